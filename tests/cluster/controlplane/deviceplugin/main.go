// Command deviceplugin speaks the kubelet's device plugin protocol for the
// GPUs that its container sees, as NVIDIA's plugin does, and needs no NVML: it
// asks the `nvidia-smi` that the NVIDIA runtime brings into the container.
//
// It stands in for NVIDIA's image on lab hosts, whose kubelet, containerd and
// runtime are real. With no GPU in sight, a strategy that it does not know or a
// configuration file with a mistake it fails as the original does.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"sigs.k8s.io/yaml"
)

const (
	resourceName = "nvidia.com/gpu"
	socketName   = "nvidia-gpu.sock"
	askLimit     = 10 * time.Second
	lookEvery    = time.Second // for a kubelet that was restarted
)

// listed matches a line of `nvidia-smi --list-gpus`.
var listed = regexp.MustCompile(`^GPU (\d+): .* \(UUID: (GPU-[-0-9a-f]+)\)$`)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	replicas, err := settings()
	if err != nil {
		log.Fatalf("error starting plugins: unable to load config: %v", err)
	}
	gpus, err := findGPUs(ctx)
	if err == nil && len(gpus) == 0 {
		err = errors.New("no devices found")
	}
	if err != nil && failsOnInitError() {
		log.Fatalf("error starting plugins: %v", err)
	}
	if err != nil {
		log.Printf("%v; waiting indefinitely", err)
		<-ctx.Done()
		return
	}
	devices := shared(gpus, replicas)
	log.Printf("offering %s: %s", resourceName, strings.Join(devices, " "))
	if err := serve(ctx, devices); err != nil {
		log.Fatalf("error: %v", err)
	}
}

// configuration is what NVIDIA documents of its configuration file, as far as
// playbooks of this project write it.
type configuration struct {
	Version string `json:"version"`
	Sharing struct {
		TimeSlicing struct {
			Resources []struct {
				Name     string `json:"name"`
				Replicas int    `json:"replicas"`
			} `json:"resources"`
		} `json:"timeSlicing"`
	} `json:"sharing"`
}

// settings reads NVIDIA's options, and returns how often each GPU is offered.
func settings() (int, error) {
	if strategy := os.Getenv("MIG_STRATEGY"); !slices.Contains([]string{"", "none", "single", "mixed"}, strategy) {
		return 0, fmt.Errorf("unknown MIG strategy: %s", strategy)
	}
	for strategy := range strings.SplitSeq(os.Getenv("DEVICE_LIST_STRATEGY"), ",") {
		if !slices.Contains([]string{"", "envvar", "volume-mounts", "cdi-annotations", "cdi-cri"}, strategy) {
			return 0, fmt.Errorf("invalid --device-list-strategy option: %s", strategy)
		}
	}
	path := os.Getenv("CONFIG_FILE")
	if path == "" {
		return 1, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var config configuration
	if err := yaml.UnmarshalStrict(text, &config); err != nil {
		return 0, err
	}
	if config.Version != "v1" {
		return 0, fmt.Errorf("unknown version: %q", config.Version)
	}
	replicas := 1
	for _, resource := range config.Sharing.TimeSlicing.Resources {
		if resource.Replicas < 2 {
			return 0, fmt.Errorf("number of replicas must be >= 2, not %d", resource.Replicas)
		}
		if resource.Name == resourceName {
			replicas = resource.Replicas
		}
	}
	return replicas, nil
}

// shared returns what is offered: each GPU, or as many parts of its time.
func shared(gpus []string, replicas int) []string {
	if replicas == 1 {
		return gpus
	}
	var devices []string
	for _, gpu := range gpus {
		for replica := range replicas {
			devices = append(devices, fmt.Sprintf("%s::%d", gpu, replica))
		}
	}
	return devices
}

// failsOnInitError reads NVIDIA's option of that name, which is on by default.
func failsOnInitError() bool {
	if slices.Contains(os.Args[1:], "--fail-on-init-error=false") {
		return false
	}
	fails, err := strconv.ParseBool(os.Getenv("FAIL_ON_INIT_ERROR"))
	return err != nil || fails
}

// findGPUs returns the UUIDs of the GPUs whose device node the container has.
func findGPUs(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	output, err := exec.CommandContext(ctx, "nvidia-smi", "--list-gpus").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi: %w: %s", err, output)
	}
	var gpus []string
	for _, line := range strings.Split(string(output), "\n") {
		match := listed.FindStringSubmatch(strings.TrimSpace(line))
		if match == nil {
			continue
		}
		if _, err := os.Stat("/dev/nvidia" + match[1]); err == nil {
			gpus = append(gpus, match[2])
		}
	}
	return gpus, nil
}

// serve answers the kubelet, and registers with it whenever it starts anew.
func serve(ctx context.Context, devices []string) error {
	var registeredWith os.FileInfo
	var server *grpc.Server
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if socket, err := os.Stat(api.KubeletSocket); err == nil && !stillRegistered(registeredWith, socket) {
			if server != nil {
				server.Stop()
			}
			if server, err = listen(devices); err != nil {
				return err
			}
			if err := register(ctx); err != nil {
				log.Printf("register: %v", err)
			} else {
				registeredWith = socket
				log.Printf("registered with the kubelet")
			}
		}
		select {
		case <-ctx.Done():
			if server != nil {
				server.Stop()
			}
			return nil
		case <-ticker.C:
		}
	}
}

// stillRegistered tells whether the kubelet behind its socket is the one that
// the plugin has registered with. One that starts removes all sockets of the
// folder, and its new socket may well get the number of its old one.
func stillRegistered(before, now os.FileInfo) bool {
	_, err := os.Stat(filepath.Join(api.DevicePluginPath, socketName))
	return err == nil && before != nil && os.SameFile(before, now) && before.ModTime().Equal(now.ModTime())
}

func listen(devices []string) (*grpc.Server, error) {
	path := filepath.Join(api.DevicePluginPath, socketName)
	if err := os.RemoveAll(path); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, &plugin{devices: devices})
	go func() {
		if err := server.Serve(listener); err != nil {
			log.Printf("serve: %v", err)
		}
	}()
	return server, nil
}

func register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	connection, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = api.NewRegistrationClient(connection).Register(ctx, &api.RegisterRequest{
		Version:      api.Version,
		Endpoint:     socketName,
		ResourceName: resourceName,
		Options:      &api.DevicePluginOptions{},
	})
	return err
}

// plugin answers the kubelet for a fixed set of GPUs, or parts of their time.
type plugin struct {
	api.UnimplementedDevicePluginServer
	devices []string
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	answer := &api.ListAndWatchResponse{}
	for _, device := range p.devices {
		answer.Devices = append(answer.Devices, &api.Device{ID: device, Health: api.Healthy})
	}
	if err := stream.Send(answer); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// Allocate has the NVIDIA runtime bring exactly these GPUs into the container:
// device list strategy `envvar`, NVIDIA's default.
func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		var gpus []string
		for _, id := range container.DevicesIds {
			if !slices.Contains(p.devices, id) {
				return nil, fmt.Errorf("unknown device `%s`", id)
			}
			gpu, _, _ := strings.Cut(id, "::")
			if !slices.Contains(gpus, gpu) {
				gpus = append(gpus, gpu)
			}
		}
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(gpus, ",")},
		})
	}
	return answer, nil
}
