package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	authentication "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// startAgain is how long after a command could not be started that is tried again.
const startAgain = 2 * time.Second

// process is the command of a pod's first container, run on this machine, with
// its volumes as folders. There is no container around it: paths below a
// mountPath in its command and environment are those of the folders.
type process struct {
	folder string // of the pod: volumes/, rootfs/, log
	gate   sync.Mutex

	lock    sync.Mutex
	command *exec.Cmd
	code    int
	ended   bool
	grew    chan struct{} // closed and made anew with each line of the log, and at the end
}

// startProcess makes the pod's volumes and starts its command.
func (s *standIn) startProcess(ctx context.Context, pod *v1.Pod, ended func()) (*process, error) {
	p := &process{folder: filepath.Join(s.podsDir, string(pod.UID)), grew: make(chan struct{})}
	if err := os.MkdirAll(filepath.Join(p.folder, "rootfs"), 0o755); err != nil {
		return nil, err
	}
	if err := s.fillVolumes(ctx, p, pod); err != nil {
		return nil, err
	}
	container := pod.Spec.Containers[0]
	words := append(append([]string{}, container.Command...), container.Args...)
	if len(words) == 0 {
		return nil, errors.New("a stand-in has no image: the container must have a command")
	}
	for i := range words {
		words[i] = p.mapped(container, words[i])
	}
	command := exec.Command(words[0], words[1:]...)
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	for _, variable := range container.Env {
		value, err := s.valueOf(ctx, pod, variable)
		if err != nil {
			return nil, err
		}
		command.Env = append(command.Env, variable.Name+"="+p.mapped(container, value))
	}
	// A group of its own, which is ended as a whole.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output, writer := io.Pipe()
	command.Stdout, command.Stderr = writer, writer
	log, err := os.Create(p.logFile())
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		log.Close()
		return nil, err
	}
	p.command = command
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		defer log.Close()
		lines := bufio.NewReaderSize(output, 64<<10)
		for {
			line, err := lines.ReadString('\n')
			if line != "" {
				fmt.Fprintf(log, "%s %s\n", time.Now().UTC().Format(time.RFC3339Nano), strings.TrimSuffix(line, "\n"))
				p.tell(false)
			}
			if err != nil {
				return
			}
		}
	}()
	go func() {
		err := command.Wait()
		writer.Close()
		<-copied
		p.lock.Lock()
		p.code = command.ProcessState.ExitCode()
		if status, is := command.ProcessState.Sys().(syscall.WaitStatus); is && status.Signaled() {
			p.code = 128 + int(status.Signal())
		}
		p.lock.Unlock()
		_ = err // Its exit status says the same.
		p.tell(true)
		ended()
	}()
	return p, nil
}

func (p *process) logFile() string { return filepath.Join(p.folder, "log") }

// tell wakes whoever follows the log.
func (p *process) tell(ended bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.ended = p.ended || ended
	close(p.grew)
	p.grew = make(chan struct{})
}

// state returns whether it has ended, with what, and what says that there is more.
func (p *process) state() (bool, int, <-chan struct{}) {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.ended, p.code, p.grew
}

// signal tells the process and all that it has started.
func (p *process) signal(signal syscall.Signal) {
	if ended, _, _ := p.state(); !ended {
		_ = syscall.Kill(-p.command.Process.Pid, signal)
	}
}

// mapped returns a text in which paths below a mount are those of its folder.
func (p *process) mapped(container v1.Container, text string) string {
	for _, mount := range container.VolumeMounts {
		if text == mount.MountPath || strings.HasPrefix(text, mount.MountPath+"/") {
			return filepath.Join(p.folder, "volumes", mount.Name) + strings.TrimPrefix(text, mount.MountPath)
		}
	}
	return text
}

// valueOf returns a variable of the environment: a text, a field of the pod, or a key of a ConfigMap or Secret.
func (s *standIn) valueOf(ctx context.Context, pod *v1.Pod, variable v1.EnvVar) (string, error) {
	from := variable.ValueFrom
	switch {
	case from == nil:
		return variable.Value, nil
	case from.FieldRef != nil:
		return fieldOf(pod, from.FieldRef.FieldPath)
	case from.SecretKeyRef != nil:
		data, err := s.secret(ctx, pod.Namespace, from.SecretKeyRef.Name)
		return string(data[from.SecretKeyRef.Key]), err
	case from.ConfigMapKeyRef != nil:
		data, err := s.config(ctx, pod.Namespace, from.ConfigMapKeyRef.Name)
		return string(data[from.ConfigMapKeyRef.Key]), err
	}
	return "", fmt.Errorf("a stand-in can't read the variable %s", variable.Name)
}

// fieldOf returns what the downward API gives for a field.
func fieldOf(pod *v1.Pod, field string) (string, error) {
	name, key := field, ""
	if before, after, found := strings.Cut(field, "['"); found {
		name, key = before, strings.TrimSuffix(after, "']")
	}
	switch name {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.annotations":
		return pod.Annotations[key], nil
	case "metadata.labels":
		return pod.Labels[key], nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	}
	return "", fmt.Errorf("a stand-in does not know the field %s", field)
}

func (s *standIn) secret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	found, err := s.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return found.Data, nil
}

func (s *standIn) config(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	found, err := s.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{}
	for key, text := range found.Data {
		data[key] = []byte(text)
	}
	for key, bytes := range found.BinaryData {
		data[key] = bytes
	}
	return data, nil
}

// fillVolumes writes what the pod's volumes hold; those of the downward API again whenever the pod has changed.
func (s *standIn) fillVolumes(ctx context.Context, p *process, pod *v1.Pod) error {
	for _, volume := range pod.Spec.Volumes {
		folder := filepath.Join(p.folder, "volumes", volume.Name)
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return err
		}
		var err error
		switch {
		case volume.EmptyDir != nil:
		case volume.DownwardAPI != nil:
			err = p.fillDownward(folder, pod, volume.DownwardAPI.Items)
		case volume.Secret != nil:
			err = s.fillFrom(ctx, p, folder, pod, v1.VolumeProjection{Secret: &v1.SecretProjection{
				LocalObjectReference: v1.LocalObjectReference{Name: volume.Secret.SecretName}, Items: volume.Secret.Items,
			}})
		case volume.ConfigMap != nil:
			err = s.fillFrom(ctx, p, folder, pod, v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{
				LocalObjectReference: volume.ConfigMap.LocalObjectReference, Items: volume.ConfigMap.Items,
			}})
		case volume.Projected != nil:
			for _, source := range volume.Projected.Sources {
				err = errors.Join(err, s.fillFrom(ctx, p, folder, pod, source))
			}
		case volume.HostPath != nil:
			_ = os.Remove(folder)
			err = os.Symlink(volume.HostPath.Path, folder)
		default:
			err = fmt.Errorf("a stand-in does not know the kind of the volume %s", volume.Name)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func (s *standIn) fillFrom(ctx context.Context, p *process, folder string, pod *v1.Pod, source v1.VolumeProjection) error {
	var data map[string][]byte
	var items []v1.KeyToPath
	var err error
	switch {
	case source.Secret != nil:
		data, err = s.secret(ctx, pod.Namespace, source.Secret.Name)
		items = source.Secret.Items
	case source.ConfigMap != nil:
		data, err = s.config(ctx, pod.Namespace, source.ConfigMap.Name)
		items = source.ConfigMap.Items
	case source.DownwardAPI != nil:
		return p.fillDownward(folder, pod, source.DownwardAPI.Items)
	case source.ServiceAccountToken != nil:
		return s.fillToken(ctx, folder, pod, source.ServiceAccountToken)
	default:
		return errors.New("a stand-in does not know the kind of a projected volume")
	}
	if err != nil {
		return err
	}
	if items == nil {
		for key := range data {
			items = append(items, v1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		content, found := data[item.Key]
		if !found {
			return fmt.Errorf("references non-existent key: %s", item.Key)
		}
		if err := os.WriteFile(filepath.Join(folder, path.Clean(item.Path)), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// fillToken writes a token of the pod's service account, which only the pod that it names may use.
func (s *standIn) fillToken(ctx context.Context, folder string, pod *v1.Pod, source *v1.ServiceAccountTokenProjection) error {
	request := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{
		ExpirationSeconds: source.ExpirationSeconds,
		BoundObjectRef:    &authentication.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	if source.Audience != "" {
		request.Spec.Audiences = []string{source.Audience}
	}
	accounts := s.client.CoreV1().ServiceAccounts(pod.Namespace)
	answer, err := accounts.CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, path.Clean(source.Path)), []byte(answer.Status.Token), 0o600)
}

func (p *process) fillDownward(folder string, pod *v1.Pod, items []v1.DownwardAPIVolumeFile) error {
	p.gate.Lock()
	defer p.gate.Unlock()
	for _, item := range items {
		if item.FieldRef == nil {
			return errors.New("a stand-in knows fields of a pod alone")
		}
		text, err := fieldOf(pod, item.FieldRef.FieldPath)
		if err != nil {
			return err
		}
		// Whole, as the kubelet does: whoever reads never sees a half of it.
		file := filepath.Join(folder, item.Path)
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			return err
		}
		if err := os.Rename(file+".new", file); err != nil {
			return err
		}
	}
	return nil
}

// syncProcess brings the status of a pod whose command runs on this machine to what is so now, and starts it if it has
// not run.
func (s *standIn) syncProcess(ctx context.Context, pod *v1.Pod, spec *nodeSpec, key string) (v1.PodStatus, time.Duration, error) {
	status := *pod.Status.DeepCopy()
	run := s.attemptOf(pod, spec)
	status.HostIP, status.HostIPs = spec.ip, []v1.HostIP{{IP: spec.ip}}
	status.PodIP, status.PodIPs = run.ip, []v1.PodIP{{IP: run.ip}}
	if status.StartTime == nil {
		status.StartTime = ptr.To(metav1.NewTime(run.startedAt.Truncate(time.Second)))
	}
	if run.process == nil {
		if status.Phase == v1.PodRunning {
			// It ran under a stand-in before this one, and ended with it.
			ends(&status, pod, run, 137)
			return status, 0, nil
		}
		started, err := s.startProcess(ctx, pod, func() { s.queue.Add(key) })
		if err != nil {
			s.events.Event(pod, v1.EventTypeWarning, "FailedMount", err.Error())
			waits(&status, pod, run, "ContainerCreating", err.Error())
			return status, startAgain, nil
		}
		s.lock.Lock()
		run.process = started
		s.lock.Unlock()
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.DownwardAPI != nil {
			folder := filepath.Join(run.process.folder, "volumes", volume.Name)
			if err := run.process.fillDownward(folder, pod, volume.DownwardAPI.Items); err != nil {
				return status, 0, err
			}
		}
	}
	if ended, code, _ := run.process.state(); ended {
		ends(&status, pod, run, code)
	} else {
		runs(&status, pod, run)
	}
	return status, 0, nil
}

// endProcess ends a pod's command: at first it is asked, and after its grace period it is killed. It returns
// how long to wait until it is to be looked at again, 0 when it has ended.
func (s *standIn) endProcess(pod *v1.Pod, run *attempt) time.Duration {
	if run == nil || run.process == nil {
		return 0
	}
	if ended, _, _ := run.process.state(); ended {
		return 0
	}
	run.process.signal(syscall.SIGTERM)
	if pod.DeletionTimestamp != nil {
		if left := time.Until(pod.DeletionTimestamp.Time); left > 0 {
			return left
		}
	}
	run.process.signal(syscall.SIGKILL)
	return 100 * time.Millisecond
}

// forgetProcess removes what a pod that is gone has left.
func (s *standIn) forgetProcess(uid string, run *attempt) {
	if run == nil || run.process == nil {
		return
	}
	run.process.signal(syscall.SIGKILL)
	_ = os.RemoveAll(filepath.Join(s.podsDir, uid))
}

// killProcesses ends all commands at once: the stand-in ends.
func (s *standIn) killProcesses() {
	s.lock.Lock()
	defer s.lock.Unlock()
	for uid, run := range s.attempts {
		s.forgetProcess(uid, run)
	}
}
