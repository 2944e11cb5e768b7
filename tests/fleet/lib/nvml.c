/* A stand-in for libnvidia-ml.so.1: answers what the container toolkit asks, from the faked /proc/driver/nvidia.
 * Built with -DVERSION="…", the version of the library; one that differs from the module's fails as the real does.
 * Numbers and structures: nvml.h of CUDA 12. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_GPUS 16
enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9, VERSION_MISMATCH = 18 };

struct gpu { char address[16], uuid[64], name[64]; int minor; };
struct pci { char bus_id_legacy[16]; unsigned domain, bus, device, device_id, subsystem_id; char bus_id[32]; };

static struct gpu gpus[MAX_GPUS];
static unsigned gpu_count;

static int by_address(const void *a, const void *b) { return strcmp(((const struct gpu *)a)->address, ((const struct gpu *)b)->address); }

static void field(const char *line, const char *key, char *value, size_t size) {
    size_t length = strlen(key);
    if (strncmp(line, key, length)) return;
    line += length;
    while (*line == ' ' || *line == '\t') line++;
    snprintf(value, size, "%.*s", (int)strcspn(line, "\n"), line);
}

int nvmlInit_v2(void) {
    char line[256], path[512], minor[16];
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    if (!file) return DRIVER_NOT_LOADED;
    int same = fgets(line, sizeof line, file) && strstr(line, "  " VERSION "  ");
    fclose(file);
    if (!same) return VERSION_MISMATCH;
    gpu_count = 0;
    DIR *folder = opendir("/proc/driver/nvidia/gpus");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.' || gpu_count == MAX_GPUS) continue;
        struct gpu *gpu = &gpus[gpu_count];
        snprintf(gpu->address, sizeof gpu->address, "%.15s", entry->d_name);
        snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%s/information", entry->d_name);
        if (!(file = fopen(path, "r"))) continue;
        while (fgets(line, sizeof line, file)) {
            field(line, "Model:", gpu->name, sizeof gpu->name);
            field(line, "GPU UUID:", gpu->uuid, sizeof gpu->uuid);
            field(line, "Device Minor:", minor, sizeof minor);
        }
        fclose(file);
        gpu->minor = atoi(minor);
        gpu_count++;
    }
    if (folder) closedir(folder);
    qsort(gpus, gpu_count, sizeof *gpus, by_address);
    return SUCCESS;
}
int nvmlInit(void) { return nvmlInit_v2(); }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) {
    return code == SUCCESS ? "Success" : code == VERSION_MISMATCH ? "Driver/library version mismatch"
         : code == DRIVER_NOT_LOADED ? "Driver Not Loaded" : code == NOT_SUPPORTED ? "Not Supported" : "Unknown Error";
}

static int text(char *buffer, unsigned length, const char *value) { snprintf(buffer, length, "%s", value); return SUCCESS; }
int nvmlSystemGetDriverVersion(char *buffer, unsigned length) { return text(buffer, length, VERSION); }
int nvmlSystemGetNVMLVersion(char *buffer, unsigned length) { return text(buffer, length, "12." VERSION); }
int nvmlSystemGetCudaDriverVersion(int *version) { *version = 12040; return SUCCESS; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 12040; return SUCCESS; }

int nvmlDeviceGetCount_v2(unsigned *count) { *count = gpu_count; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gpu **gpu) {
    if (index >= gpu_count) return INVALID_ARGUMENT;
    *gpu = &gpus[index];
    return SUCCESS;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, struct gpu **gpu) {
    for (unsigned i = 0; i < gpu_count; i++) if (!strcmp(gpus[i].uuid, uuid)) { *gpu = &gpus[i]; return SUCCESS; }
    return NOT_FOUND;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct gpu **gpu) {
    if (strlen(bus_id) > 12) bus_id += strlen(bus_id) - 12;
    for (unsigned i = 0; i < gpu_count; i++) if (!strcasecmp(gpus[i].address, bus_id)) { *gpu = &gpus[i]; return SUCCESS; }
    return NOT_FOUND;
}
int nvmlDeviceGetName(struct gpu *gpu, char *buffer, unsigned length) { return text(buffer, length, gpu->name); }
int nvmlDeviceGetUUID(struct gpu *gpu, char *buffer, unsigned length) { return text(buffer, length, gpu->uuid); }
int nvmlDeviceGetMinorNumber(struct gpu *gpu, unsigned *minor) { *minor = gpu->minor; return SUCCESS; }
int nvmlDeviceGetIndex(struct gpu *gpu, unsigned *index) { *index = gpu - gpus; return SUCCESS; }
int nvmlDeviceGetPciInfo_v3(struct gpu *gpu, struct pci *pci) {
    memset(pci, 0, sizeof *pci);
    sscanf(gpu->address, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
    pci->device_id = 0x1eb810de;
    pci->subsystem_id = 0x12a210de;
    snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%04X:%02X:%02X.0", pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
    snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:%02X.0", pci->domain, pci->bus & 0xff, pci->device & 0xff);
    return SUCCESS;
}
int nvmlDeviceGetPciInfo_v2(struct gpu *gpu, struct pci *pci) { return nvmlDeviceGetPciInfo_v3(gpu, pci); }
int nvmlDeviceGetBrand(struct gpu *gpu, int *brand) { (void)gpu; *brand = 2; return SUCCESS; }
int nvmlDeviceGetArchitecture(struct gpu *gpu, unsigned *architecture) { (void)gpu; *architecture = 6; return SUCCESS; }
int nvmlDeviceGetCudaComputeCapability(struct gpu *gpu, int *major, int *minor) { (void)gpu; *major = 7; *minor = 5; return SUCCESS; }
int nvmlDeviceGetMemoryInfo(struct gpu *gpu, unsigned long long *info) {
    (void)gpu;
    info[0] = info[1] = 15360ULL << 20;
    info[2] = 0;
    return SUCCESS;
}
int nvmlDeviceGetMigMode(struct gpu *gpu, unsigned *current, unsigned *pending) { (void)gpu; (void)current; (void)pending; return NOT_SUPPORTED; }
int nvmlDeviceGetMaxMigDeviceCount(struct gpu *gpu, unsigned *count) { (void)gpu; *count = 0; return SUCCESS; }
int nvmlDeviceGetMigDeviceHandleByIndex(struct gpu *gpu, unsigned index, struct gpu **mig) { (void)gpu; (void)index; (void)mig; return NOT_FOUND; }
int nvmlDeviceIsMigDeviceHandle(struct gpu *gpu, unsigned *is) { (void)gpu; *is = 0; return SUCCESS; }
