package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// crashAfter is how long a container that will crash runs. It is Ready
	// meanwhile, as any container without a readiness probe.
	crashAfter = 500 * time.Millisecond
	// The kubelet's own: the first wait before a restart, doubled each time, and the longest.
	backOffFirst = 10 * time.Second
	backOffMost  = 5 * time.Minute
	// sandboxAgain is about how often the kubelet tries to make a sandbox again.
	sandboxAgain = 10 * time.Second
)

// attempt is one run of a pod's containers.
type attempt struct {
	startedAt time.Time // of this run
	crashedAt time.Time // zero while it runs
	restarts  int32
	ip        string
	settled   bool     // it has started well: what its node lacks later can't stop it
	serves    bool     // it is a device plugin, and has registered GPUs
	process   *process // its command, where the node runs commands
}

// syncPod brings one pod's status to what its node would report now, and
// returns when to look again; 0 means at its next change.
func (s *standIn) syncPod(ctx context.Context, key string) (time.Duration, error) {
	object, found, err := s.pods.GetIndexer().GetByKey(key)
	if err != nil || !found {
		return 0, err
	}
	pod := object.(*v1.Pod)
	n := s.node(pod.Spec.NodeName)
	if n == nil {
		return 0, nil // Another kubelet's.
	}
	spec := n.spec()
	if spec.ready == readySilent {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if isDevicePlugin(pod) {
		defer n.poke()
	}
	if pod.DeletionTimestamp != nil {
		s.lock.Lock()
		run := s.attempts[string(pod.UID)]
		s.lock.Unlock()
		if again := s.endProcess(pod, run); again > 0 {
			return again, nil
		}
		return 0, s.finish(ctx, pod)
	}
	if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		return 0, nil
	}
	var status v1.PodStatus
	var again time.Duration
	if spec.processes {
		if status, again, err = s.syncProcess(ctx, pod, spec, key); err != nil {
			return 0, err
		}
	} else {
		status, again = s.statusOf(pod, spec)
	}
	if equality.Semantic.DeepEqual(pod.Status, status) {
		return again, nil
	}
	changed := pod.DeepCopy()
	changed.Status = status
	_, err = s.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	return again, err
}

// finish removes a pod that was asked to end: its containers end at once.
func (s *standIn) finish(ctx context.Context, pod *v1.Pod) error {
	err := s.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To(int64(0)),
		Preconditions:      &metav1.Preconditions{UID: &pod.UID},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// statusOf returns the status that a kubelet would report for the pod now.
func (s *standIn) statusOf(pod *v1.Pod, spec *nodeSpec) (v1.PodStatus, time.Duration) {
	status := *pod.Status.DeepCopy()
	run := s.attemptOf(pod, spec)
	fate, why := fateRuns, ""
	if !run.settled {
		fate, why = s.fateOf(pod, spec)
	}
	status.HostIP = spec.ip
	status.HostIPs = []v1.HostIP{{IP: spec.ip}}
	if status.StartTime == nil {
		status.StartTime = ptr.To(metav1.NewTime(run.startedAt.Truncate(time.Second)))
	}
	switch fate {
	case fateNoSandbox:
		s.events.Event(pod, v1.EventTypeWarning, "FailedCreatePodSandBox", "Failed to create pod sandbox: "+why)
		waits(&status, pod, run, "ContainerCreating", "")
		return status, sandboxAgain
	case fateNoImage:
		message := fmt.Sprintf("Back-off pulling image %q: %s", pod.Spec.Containers[0].Image, why)
		s.events.Event(pod, v1.EventTypeWarning, "Failed", message)
		waits(&status, pod, run, "ImagePullBackOff", message)
		return status, sandboxAgain
	}
	status.PodIP = run.ip
	status.PodIPs = []v1.PodIP{{IP: run.ip}}
	if fate == fateCrashes {
		return status, s.crash(&status, pod, run, why)
	}
	ran := time.Since(run.startedAt)
	if wanted := runsFor(pod); fate == fateEnds && ran >= wanted {
		code, _ := strconv.Atoi(pod.Annotations[annotationExitCode])
		ends(&status, pod, run, code)
		return status, 0
	} else if fate == fateEnds {
		runs(&status, pod, run)
		return status, wanted - ran
	}
	if !run.crashedAt.IsZero() { // What it lacked is there now, and its next start works.
		if left := time.Until(run.crashedAt.Add(backOffOf(run.restarts))); left > 0 {
			return status, left
		}
		s.restart(run)
	}
	s.settle(pod, spec, run)
	runs(&status, pod, run)
	return status, 0
}

// attemptOf returns the current run of a pod, which it starts if there is none.
// The workqueue gives a pod to one worker at a time, which alone changes it.
func (s *standIn) attemptOf(pod *v1.Pod, spec *nodeSpec) *attempt {
	s.lock.Lock()
	defer s.lock.Unlock()
	run := s.attempts[string(pod.UID)]
	if run != nil {
		return run
	}
	run = &attempt{startedAt: time.Now(), ip: pod.Status.PodIP}
	if statuses := pod.Status.ContainerStatuses; len(statuses) > 0 {
		run.restarts = statuses[0].RestartCount // This program was started anew.
		if running := statuses[0].State.Running; running != nil {
			run.startedAt = running.StartedAt.Time
		}
	}
	switch {
	case run.ip != "":
	case pod.Spec.HostNetwork:
		run.ip = spec.ip
	default:
		s.nextIP++
		run.ip = fmt.Sprintf("10.244.%d.%d", s.nextIP/250%250, s.nextIP%250+2)
	}
	s.attempts[string(pod.UID)] = run
	return run
}

// crash moves a crashing pod on: it runs, exits, waits longer and longer, runs again.
func (s *standIn) crash(status *v1.PodStatus, pod *v1.Pod, run *attempt, why string) time.Duration {
	now := time.Now()
	if run.crashedAt.IsZero() {
		if left := time.Until(run.startedAt.Add(crashAfter)); left > 0 {
			runs(status, pod, run)
			return left
		}
		run.crashedAt = now
	}
	left := time.Until(run.crashedAt.Add(backOffOf(run.restarts)))
	if left <= 0 {
		s.restart(run)
		runs(status, pod, run)
		return crashAfter
	}
	message := fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
		backOffOf(run.restarts), pod.Spec.Containers[0].Name, pod.Name, pod.Namespace, pod.UID)
	s.events.Event(pod, v1.EventTypeWarning, "BackOff", "Back-off restarting failed container")
	waits(status, pod, run, "CrashLoopBackOff", message)
	for i := range status.ContainerStatuses {
		ended := exited(run, run.crashedAt, 1)
		if pod.Spec.Containers[i].TerminationMessagePolicy == v1.TerminationMessageFallbackToLogsOnError {
			ended.Message = why
		}
		status.ContainerStatuses[i].LastTerminationState = v1.ContainerState{Terminated: ended}
	}
	return left
}

func (s *standIn) restart(run *attempt) {
	run.startedAt, run.crashedAt = time.Now(), time.Time{}
	run.restarts++
}

// settle notes that a run of the pod has started well.
func (s *standIn) settle(pod *v1.Pod, spec *nodeSpec, run *attempt) {
	handler, _ := s.handlerOf(pod)
	s.lock.Lock()
	defer s.lock.Unlock()
	run.serves = run.serves || !run.settled && isDevicePlugin(pod) && whyNoGPUs(pod, spec, handler) == ""
	run.settled = true
}

func backOffOf(restarts int32) time.Duration {
	wait := backOffFirst
	for range restarts {
		if wait *= 2; wait >= backOffMost {
			return backOffMost
		}
	}
	return wait
}

// runs makes it the status of a pod all of whose containers run.
func runs(status *v1.PodStatus, pod *v1.Pod, run *attempt) {
	status.Phase = v1.PodRunning
	started := metav1.NewTime(run.startedAt.Truncate(time.Second))
	setContainers(status, pod, run, true, v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: started}})
	setPodConditions(status, true, "")
}

// waits makes it the status of a pod whose containers do not run, for a reason.
func waits(status *v1.PodStatus, pod *v1.Pod, run *attempt, reason, message string) {
	if status.Phase == "" {
		status.Phase = v1.PodPending
	}
	setContainers(status, pod, run, false, v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: message}})
	setPodConditions(status, false, "ContainersNotReady")
}

// ends makes it the status of a pod whose containers have ended by themselves.
func ends(status *v1.PodStatus, pod *v1.Pod, run *attempt, code int) {
	status.Phase = v1.PodSucceeded
	reason := "PodCompleted"
	if code != 0 {
		status.Phase, reason = v1.PodFailed, "PodFailed"
	}
	setContainers(status, pod, run, false, v1.ContainerState{Terminated: exited(run, time.Now(), code)})
	setPodConditions(status, false, reason)
}

func exited(run *attempt, at time.Time, code int) *v1.ContainerStateTerminated {
	ended := &v1.ContainerStateTerminated{
		ExitCode:   int32(code),
		Reason:     "Completed",
		StartedAt:  metav1.NewTime(run.startedAt.Truncate(time.Second)),
		FinishedAt: metav1.NewTime(at.Truncate(time.Second)),
	}
	if code != 0 {
		ended.Reason = "Error"
	}
	return ended
}

func setContainers(status *v1.PodStatus, pod *v1.Pod, run *attempt, ready bool, state v1.ContainerState) {
	before := map[string]v1.ContainerStatus{}
	for _, container := range status.ContainerStatuses {
		before[container.Name] = container
	}
	status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{
			Name:                 container.Name,
			Image:                container.Image,
			ImageID:              container.Image,
			ContainerID:          "containerd://" + digestOf("container", string(pod.UID)+container.Name),
			Ready:                ready,
			Started:              ptr.To(ready),
			RestartCount:         run.restarts,
			State:                state,
			LastTerminationState: before[container.Name].LastTerminationState,
		})
	}
	status.InitContainerStatuses = nil
	for _, container := range pod.Spec.InitContainers {
		status.InitContainerStatuses = append(status.InitContainerStatuses, v1.ContainerStatus{
			Name:    container.Name,
			Image:   container.Image,
			ImageID: container.Image,
			Ready:   true,
			State:   v1.ContainerState{Terminated: exited(&attempt{startedAt: run.startedAt}, run.startedAt, 0)},
		})
	}
}

func setPodConditions(status *v1.PodStatus, ready bool, reason string) {
	whenReady := v1.ConditionFalse
	if ready {
		whenReady = v1.ConditionTrue
	}
	for _, kind := range []v1.PodConditionType{v1.PodReadyToStartContainers, v1.PodInitialized, v1.ContainersReady, v1.PodReady} {
		wanted := v1.PodCondition{Type: kind, Status: v1.ConditionTrue, LastTransitionTime: metav1.Now()}
		if kind == v1.ContainersReady || kind == v1.PodReady {
			wanted.Status, wanted.Reason = whenReady, reason
		}
		setPodCondition(status, wanted)
	}
}

func setPodCondition(status *v1.PodStatus, wanted v1.PodCondition) {
	for i := range status.Conditions {
		if status.Conditions[i].Type != wanted.Type {
			continue
		}
		if status.Conditions[i].Status == wanted.Status {
			wanted.LastTransitionTime = status.Conditions[i].LastTransitionTime
		}
		// ObservedGeneration and what else the server keeps there stays.
		status.Conditions[i].Status, status.Conditions[i].Reason = wanted.Status, wanted.Reason
		status.Conditions[i].LastTransitionTime = wanted.LastTransitionTime
		return
	}
	status.Conditions = append(status.Conditions, wanted)
}
