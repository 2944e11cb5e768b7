package main

import (
	"context"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// The kubelet's own numbers: nodeStatusUpdateFrequency, nodeLeaseDurationSeconds
// and a quarter of it, nodeStatusReportFrequency.
const (
	statusEvery = 10 * time.Second
	leaseLasts  = 40 * time.Second
	leaseEvery  = leaseLasts / 4
	reportEvery = 5 * time.Minute
	askLimit    = 10 * time.Second
)

// pluginGrace is how long the kubelet keeps the capacity of a device plugin
// that went away; its allocatable is 0 from the first moment.
//
// Source: endpointStopGracePeriod in pkg/kubelet/cm/devicemanager/types.go.
const pluginGrace = 5 * time.Minute

// gpuResource is what NVIDIA's device plugin registers.
const gpuResource v1.ResourceName = "nvidia.com/gpu"

// node plays the kubelet of one node.
type node struct {
	all   *standIn
	stop  context.CancelFunc
	pokes chan struct{}

	lock      sync.Mutex
	current   *nodeSpec
	served    bool      // a device plugin has registered since the kubelet started
	stoppedAt time.Time // when the last device plugin went; zero while one runs
}

func newNode(all *standIn, spec *nodeSpec) *node {
	return &node{all: all, pokes: make(chan struct{}, 1), current: spec}
}

func (n *node) spec() *nodeSpec {
	n.lock.Lock()
	defer n.lock.Unlock()
	return n.current
}

func (n *node) change(spec *nodeSpec) {
	n.lock.Lock()
	n.current = spec
	n.lock.Unlock()
	n.poke()
}

// poke has the status looked at again soon.
func (n *node) poke() {
	select {
	case n.pokes <- struct{}{}:
	default:
	}
}

// run registers the node and keeps its lease and status until ctx ends.
func (n *node) run(ctx context.Context) {
	for !n.register(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
	status, lease := time.NewTicker(statusEvery), time.NewTicker(leaseEvery)
	defer status.Stop()
	defer lease.Stop()
	n.renewLease(ctx)
	n.report(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-lease.C:
			n.renewLease(ctx)
		case <-status.C:
			n.report(ctx)
		case <-n.pokes:
			n.report(ctx)
		}
	}
}

// register creates the node, or takes over the one of this name with its
// devices set to none, as a kubelet that starts does.
func (n *node) register(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	spec := n.spec()
	wanted := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: spec.name, Labels: map[string]string{
		v1.LabelHostname:          spec.hostname,
		v1.LabelOSStable:          "linux",
		v1.LabelArchStable:        spec.arch,
		"beta.kubernetes.io/os":   "linux",
		"beta.kubernetes.io/arch": spec.arch,
	}}, Spec: v1.NodeSpec{Taints: spec.taints}}
	for key, value := range spec.labels {
		wanted.Labels[key] = value
	}
	n.fill(&wanted.Status, spec)
	_, err := n.all.client.CoreV1().Nodes().Create(ctx, wanted, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = n.update(ctx, func(found *v1.Node) {
			if _, had := found.Status.Capacity[gpuResource]; had {
				n.lock.Lock()
				n.served, n.stoppedAt = true, time.Now().Add(-pluginGrace)
				n.lock.Unlock()
			}
			for key, value := range wanted.Labels {
				if found.Labels == nil {
					found.Labels = map[string]string{}
				}
				found.Labels[key] = value
			}
		})
	}
	if err != nil {
		klog.ErrorS(err, "Can't register a node yet", "node", spec.name)
		return false
	}
	return true
}

// update changes the node's labels, then its status, in the API.
func (n *node) update(ctx context.Context, change func(*v1.Node)) error {
	nodes := n.all.client.CoreV1().Nodes()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		found, err := nodes.Get(ctx, n.spec().name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		before := found.DeepCopy()
		change(found)
		if !equality.Semantic.DeepEqual(before.ObjectMeta, found.ObjectMeta) {
			if found, err = nodes.Update(ctx, found, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		if !n.fill(&found.Status, n.spec()) {
			return nil
		}
		_, err = nodes.UpdateStatus(ctx, found, metav1.UpdateOptions{})
		return err
	})
}

// report brings the node's status in the API up to date.
func (n *node) report(ctx context.Context) {
	if n.spec().ready == readySilent {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if err := n.update(ctx, func(*v1.Node) {}); err != nil && ctx.Err() == nil {
		klog.ErrorS(err, "Can't report a node's status", "node", n.spec().name)
	}
}

// fill sets a status to what the node is now, and tells whether that is news.
func (n *node) fill(status *v1.NodeStatus, spec *nodeSpec) bool {
	before := status.DeepCopy()
	status.Addresses = []v1.NodeAddress{
		{Type: v1.NodeInternalIP, Address: spec.ip},
		{Type: v1.NodeHostName, Address: spec.hostname},
	}
	status.DaemonEndpoints.KubeletEndpoint.Port = n.all.logPort
	status.NodeInfo = v1.NodeSystemInfo{
		MachineID:               spec.machineID,
		SystemUUID:              digestOf("system", spec.name),
		BootID:                  digestOf("boot", spec.name),
		KernelVersion:           "6.1.0-lab",
		OSImage:                 "Debian GNU/Linux 12 (bookworm)",
		ContainerRuntimeVersion: "containerd://2.1.4",
		KubeletVersion:          version.Get().GitVersion,
		OperatingSystem:         "linux",
		Architecture:            spec.arch,
	}
	if status.Capacity == nil {
		status.Capacity, status.Allocatable = v1.ResourceList{}, v1.ResourceList{}
	}
	for name, quantity := range map[v1.ResourceName]resource.Quantity{
		v1.ResourceCPU:              spec.cpu,
		v1.ResourceMemory:           spec.memory,
		v1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		v1.ResourcePods:             resource.MustParse("110"),
	} {
		status.Capacity[name], status.Allocatable[name] = quantity, quantity
	}
	if capacity, allocatable, known := n.devices(spec); known {
		status.Capacity[gpuResource] = *resource.NewQuantity(int64(capacity), resource.DecimalSI)
		status.Allocatable[gpuResource] = *resource.NewQuantity(int64(allocatable), resource.DecimalSI)
	}
	n.setConditions(status, spec)
	return !equality.Semantic.DeepEqual(before, status)
}

// devices returns what the device manager tells of GPUs; nothing is known of
// them before a plugin first registers.
func (n *node) devices(spec *nodeSpec) (capacity, allocatable int, known bool) {
	registered := n.all.pluginServes(spec.name)
	n.lock.Lock()
	defer n.lock.Unlock()
	switch {
	case registered:
		n.served, n.stoppedAt = true, time.Time{}
		return spec.gpus, spec.gpus, true
	case !n.served:
		return 0, 0, false
	case n.stoppedAt.IsZero():
		n.stoppedAt = time.Now()
	}
	if time.Since(n.stoppedAt) < pluginGrace {
		return spec.gpus, 0, true
	}
	return 0, 0, true
}

func (n *node) setConditions(status *v1.NodeStatus, spec *nodeSpec) {
	ready := v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"}
	if spec.ready == readyFalse {
		ready.Status, ready.Reason = v1.ConditionFalse, "KubeletNotReady"
		ready.Message = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady " +
			"message:Network plugin returns error: cni plugin not initialized"
	}
	wanted := []v1.NodeCondition{
		{Type: v1.NodeMemoryPressure, Status: v1.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: v1.NodeDiskPressure, Status: v1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{Type: v1.NodePIDPressure, Status: v1.ConditionFalse, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
		ready,
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	for i := range wanted {
		before := conditionOf(status, wanted[i].Type)
		wanted[i].LastTransitionTime, wanted[i].LastHeartbeatTime = now, now
		if before == nil {
			continue
		}
		if before.Status == wanted[i].Status {
			wanted[i].LastTransitionTime = before.LastTransitionTime
			if before.Reason == wanted[i].Reason && now.Sub(before.LastHeartbeatTime.Time) < reportEvery {
				wanted[i].LastHeartbeatTime = before.LastHeartbeatTime
			}
		}
	}
	status.Conditions = wanted
}

func conditionOf(status *v1.NodeStatus, kind v1.NodeConditionType) *v1.NodeCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == kind {
			return &status.Conditions[i]
		}
	}
	return nil
}

// renewLease tells the node lifecycle controller that the node lives.
func (n *node) renewLease(ctx context.Context) {
	spec := n.spec()
	if spec.ready == readySilent {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	leases := n.all.client.CoordinationV1().Leases(v1.NamespaceNodeLease)
	now := metav1.NewMicroTime(time.Now())
	lease, err := leases.Get(ctx, spec.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = leases.Create(ctx, &coordination.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: spec.name},
			Spec: coordination.LeaseSpec{
				HolderIdentity:       ptr.To(spec.name),
				LeaseDurationSeconds: ptr.To(int32(leaseLasts.Seconds())),
				RenewTime:            &now,
			},
		}, metav1.CreateOptions{})
	case err == nil:
		lease.Spec.RenewTime = &now
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil && ctx.Err() == nil {
		klog.ErrorS(err, "Can't renew a node's lease", "node", spec.name)
	}
}
