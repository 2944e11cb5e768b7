package main

import (
	"path"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
)

// Annotations of a pod that ends by itself (restartPolicy Never or OnFailure).
const (
	annotationRunsFor  = "lab.kubeon.run/runs-for"  // a Go duration; 500ms when absent
	annotationExitCode = "lab.kubeon.run/exit-code" // of its first container; 0 when absent
)

// devicePluginFolder is where device plugins meet the kubelet.
const devicePluginFolder = "/var/lib/kubelet/device-plugins"

// fate is what becomes of a pod's containers on a node.
type fate int

const (
	fateRuns      fate = iota
	fateEnds           // runs, and ends by itself
	fateCrashes        // starts, and exits at once, again and again
	fateNoSandbox      // its RuntimeClass names a runtime that the node lacks
	fateNoImage        // its image can't be pulled
)

// fateOf decides what becomes of pod on a node of this spec, with a sentence
// for people where it is no good one.
func (s *standIn) fateOf(pod *v1.Pod, spec *nodeSpec) (fate, string) {
	handler, found := s.handlerOf(pod)
	switch {
	case !found:
		return fateNoSandbox, "RuntimeClass \"" + *pod.Spec.RuntimeClassName + "\" not found"
	case handler == "nvidia" && spec.runtime == runtimeNone:
		return fateNoSandbox, "rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for \"nvidia\" is configured"
	case !spec.pull:
		return fateNoImage, "failed to pull and unpack image: dial tcp: i/o timeout"
	case wantsGPUs(pod) && crashesWithout(pod):
		if reason := whyNoGPUs(pod, spec, handler); reason != "" {
			return fateCrashes, reason
		}
	}
	if pod.Spec.RestartPolicy != v1.RestartPolicyAlways {
		return fateEnds, ""
	}
	return fateRuns, ""
}

// pluginServes tells whether a device plugin on the node has registered GPUs
// with its kubelet.
func (s *standIn) pluginServes(name string) bool {
	for _, pod := range s.podsOn(name) {
		if !isDevicePlugin(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		s.lock.Lock()
		run := s.attempts[string(pod.UID)]
		serves := run != nil && run.serves
		s.lock.Unlock()
		if serves {
			return true
		}
	}
	return false
}

// handlerOf returns the handler of the pod's RuntimeClass, empty without one,
// and false where there is no such class.
func (s *standIn) handlerOf(pod *v1.Pod) (string, bool) {
	name := pod.Spec.RuntimeClassName
	if name == nil || *name == "" {
		return "", true
	}
	object, found, err := s.classes.GetIndexer().GetByKey(*name)
	if err != nil || !found {
		return "", false
	}
	return object.(*nodev1.RuntimeClass).Handler, true
}

// whyNoGPUs returns why the pod's containers see no GPU, or nothing if they do.
func whyNoGPUs(pod *v1.Pod, spec *nodeSpec, handler string) string {
	switch {
	case spec.gpus == 0 || spec.runtime == runtimeNone || (spec.runtime == runtimeClass && handler != "nvidia"):
		// NVML is not there: no driver, or no runtime that brings its libraries in.
		return "error starting plugins: error creating plugin manager: unable to create plugin manager: " +
			"invalid device discovery strategy"
	case isDevicePlugin(pod) && !mountsPluginFolder(pod):
		return "failed to create FS watcher for " + devicePluginFolder + "/: no such file or directory"
	}
	return ""
}

func wantsGPUs(pod *v1.Pod) bool {
	return isDevicePlugin(pod) || imageHas(pod, "dcgm-exporter")
}

func isDevicePlugin(pod *v1.Pod) bool {
	return imageHas(pod, "k8s-device-plugin")
}

func imageHas(pod *v1.Pod, part string) bool {
	for _, container := range pod.Spec.Containers {
		if strings.Contains(container.Image, part) {
			return true
		}
	}
	return false
}

// crashesWithout tells whether the pod exits when it finds no GPU: the device
// plugin stays, with nothing to offer, when failOnInitError is off.
func crashesWithout(pod *v1.Pod) bool {
	if !isDevicePlugin(pod) {
		return true
	}
	for _, container := range pod.Spec.Containers {
		for _, variable := range container.Env {
			if variable.Name == "FAIL_ON_INIT_ERROR" && variable.Value == "false" {
				return false
			}
		}
		for _, word := range append(container.Command, container.Args...) {
			if strings.TrimLeft(word, "-") == "fail-on-init-error=false" {
				return false
			}
		}
	}
	return true
}

func mountsPluginFolder(pod *v1.Pod) bool {
	for _, volume := range pod.Spec.Volumes {
		if volume.HostPath == nil || path.Clean(volume.HostPath.Path) != devicePluginFolder {
			continue
		}
		for _, container := range pod.Spec.Containers {
			for _, mount := range container.VolumeMounts {
				if mount.Name == volume.Name && path.Clean(mount.MountPath) == devicePluginFolder {
					return true
				}
			}
		}
	}
	return false
}

// runsFor returns how long a pod that ends by itself runs.
func runsFor(pod *v1.Pod) time.Duration {
	duration, err := time.ParseDuration(pod.Annotations[annotationRunsFor])
	if err != nil {
		return 500 * time.Millisecond
	}
	return duration
}
