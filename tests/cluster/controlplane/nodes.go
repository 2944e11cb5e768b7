package main

import (
	"context"
	"errors"
	"flag"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	lookEvery   = 200 * time.Millisecond // how often the nodes folder is read
	podWorkers  = 4
	byNode      = "node" // the pod index by node name
	requestRate = 200    // requests a second to the API server, at most
)

// standIn plays the kubelets of all nodes that the nodes folder describes.
type standIn struct {
	client   kubernetes.Interface
	pods     cache.SharedIndexInformer
	classes  cache.SharedIndexInformer
	queue    workqueue.TypedRateLimitingInterface[string]
	events   record.EventRecorder
	lock     sync.Mutex
	nodes    map[string]*node
	attempts map[string]*attempt // by pod UID
	nextIP   int
	podsDir  string // folders of pods whose commands run here
	logPort  int32  // where their logs are served
}

// runNodes is `lab nodes`: it follows a folder of node files until it is told to end.
func runNodes() int {
	flags := flag.NewFlagSet("nodes", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the cluster")
	dir := flags.String("dir", "", "folder of node files")
	taken := flags.String("taken", "", "folder that gets a copy of each node file once the node is as it says")
	podsDir := flags.String("pods", "", "folder for pods whose commands are run")
	certificate := flags.String("certificate", "", "what logs are served with")
	key := flags.String("key", "", "its key")
	_ = flags.Parse(os.Args[1:])
	if *kubeconfig == "" || *dir == "" || *taken == "" {
		return fail(errors.New("`nodes` needs --kubeconfig, --dir and --taken"))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	standIn, err := newStandIn(ctx, *kubeconfig, *podsDir)
	if err != nil {
		return fail(err)
	}
	if *certificate != "" {
		if standIn.logPort, err = standIn.serveLogs(ctx, *certificate, *key); err != nil {
			return fail(err)
		}
	}
	standIn.follow(ctx, *dir, *taken)
	standIn.killProcesses()
	return 0
}

func newStandIn(ctx context.Context, kubeconfig, podsDir string) (*standIn, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = requestRate, requestRate
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	s := &standIn{
		client:   client,
		pods:     factory.Core().V1().Pods().Informer(),
		classes:  factory.Node().V1().RuntimeClasses().Informer(),
		queue:    workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		nodes:    map[string]*node{},
		attempts: map[string]*attempt{},
		podsDir:  podsDir,
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: client.CoreV1().Events("")})
	s.events = broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: "kubelet"})

	if err := s.pods.AddIndexers(cache.Indexers{byNode: func(object any) ([]string, error) {
		return []string{object.(*v1.Pod).Spec.NodeName}, nil
	}}); err != nil {
		return nil, err
	}
	_, err = s.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    s.podChanged,
		UpdateFunc: func(_, after any) { s.podChanged(after) },
		DeleteFunc: s.podGone,
	})
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for range podWorkers {
		go s.work(ctx)
	}
	go func() {
		<-ctx.Done()
		s.queue.ShutDown()
	}()
	return s, nil
}

// follow starts, changes and removes nodes as their files come, change and go, and copies to taken what it has done.
func (s *standIn) follow(ctx context.Context, dir, taken string) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	seen := map[string]string{}
	for {
		if now, err := readFolder(dir); err != nil {
			klog.ErrorS(err, "Can't read the nodes folder", "dir", dir)
		} else if !maps.Equal(now, seen) {
			s.reconcile(ctx, seen, now)
			seen = now
			if err := writeFolder(taken, now); err != nil {
				klog.ErrorS(err, "Can't tell which node files are done", "dir", taken)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// readFolder returns the text of each node file by the node's name.
func readFolder(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		files[entry.Name()] = string(text)
	}
	return files, nil
}

// writeFolder makes dir hold exactly these files.
func writeFolder(dir string, files map[string]string) error {
	before, err := readFolder(dir)
	if err != nil {
		return err
	}
	for name := range before {
		if _, stays := files[name]; !stays {
			err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
		}
	}
	for name, text := range files {
		if old, is := before[name]; !is || old != text {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
	}
	return err
}

func (s *standIn) reconcile(ctx context.Context, before, now map[string]string) {
	for name := range before {
		if _, stays := now[name]; !stays {
			s.removeNode(ctx, name)
		}
	}
	for name, text := range now {
		if text == before[name] {
			continue
		}
		spec, err := parseNodeSpec(name, text)
		if err != nil {
			klog.ErrorS(err, "Ignored a node file")
			continue
		}
		s.setNode(ctx, spec)
	}
}

func (s *standIn) setNode(ctx context.Context, spec *nodeSpec) {
	s.lock.Lock()
	existing := s.nodes[spec.name]
	if existing == nil {
		existing = newNode(s, spec)
		s.nodes[spec.name] = existing
		nodeCtx, cancel := context.WithCancel(ctx)
		existing.stop = cancel
		go existing.run(nodeCtx)
	} else {
		existing.change(spec)
	}
	s.lock.Unlock()
	for _, pod := range s.podsOn(spec.name) {
		s.podChanged(pod)
	}
}

// removeNode stops playing a node, deletes it, and finishes its pods, as an
// administrator who shuts a machine down for good.
func (s *standIn) removeNode(ctx context.Context, name string) {
	s.lock.Lock()
	gone := s.nodes[name]
	delete(s.nodes, name)
	s.lock.Unlock()
	if gone == nil {
		return
	}
	gone.stop()
	err := s.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		klog.ErrorS(err, "Can't delete a node", "node", name)
	}
	for _, pod := range s.podsOn(name) {
		if err := s.finish(ctx, pod); err != nil {
			klog.ErrorS(err, "Can't finish a pod", "pod", pod.Name)
		}
	}
}

func (s *standIn) node(name string) *node {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.nodes[name]
}

func (s *standIn) podsOn(name string) []*v1.Pod {
	objects, err := s.pods.GetIndexer().ByIndex(byNode, name)
	if err != nil {
		panic(err) // The index is made in newStandIn.
	}
	pods := make([]*v1.Pod, len(objects))
	for i, object := range objects {
		pods[i] = object.(*v1.Pod)
	}
	return pods
}

func (s *standIn) podChanged(object any) {
	pod := object.(*v1.Pod)
	if pod.Spec.NodeName != "" {
		s.queue.Add(pod.Namespace + "/" + pod.Name)
	}
}

func (s *standIn) podGone(object any) {
	if last, isTombstone := object.(cache.DeletedFinalStateUnknown); isTombstone {
		object = last.Obj
	}
	pod, isPod := object.(*v1.Pod)
	if !isPod {
		return
	}
	s.lock.Lock()
	s.forgetProcess(string(pod.UID), s.attempts[string(pod.UID)])
	delete(s.attempts, string(pod.UID))
	s.lock.Unlock()
	if node := s.node(pod.Spec.NodeName); node != nil {
		node.poke()
	}
}

func (s *standIn) work(ctx context.Context) {
	for {
		key, closed := s.queue.Get()
		if closed {
			return
		}
		again, err := s.syncPod(ctx, key)
		switch {
		case err != nil:
			klog.V(1).ErrorS(err, "Will try a pod again", "pod", key)
			s.queue.AddRateLimited(key)
		case again > 0:
			s.queue.Forget(key)
			s.queue.AddAfter(key, again)
		default:
			s.queue.Forget(key)
		}
		s.queue.Done(key)
	}
}
