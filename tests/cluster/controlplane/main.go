// Command lab is a Kubernetes control plane in one program: etcd, the API
// server, the controller manager, the scheduler, kubectl and the kubelet, all
// as upstream builds them, and the lab's own stand-in for GPU nodes.
//
// One program is linked once, where seven would be linked seven times. The
// name it is called by, or its first argument, says which part it plays.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // The API server and CronJobs read time zones by name.

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// parts maps each name to what it runs; a part reads its arguments from os.Args[1:].
var parts = map[string]func() int{
	"etcd":                    runEtcd,
	"kube-apiserver":          upstream(apiserver.NewAPIServerCommand),
	"kube-controller-manager": upstream(controllermanager.NewControllerManagerCommand),
	"kube-scheduler": upstream(func() *cobra.Command {
		return scheduler.NewSchedulerCommand()
	}),
	"kubelet": upstream(func() *cobra.Command {
		return kubelet.NewKubeletCommand(context.Background())
	}),
	"kubectl":     runKubectl,
	"credentials": runCredentials,
	"nodes":       runNodes,
	"check-node":  runCheckNode,
	"image":       runImage,
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, found := parts[name]; !found && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	run, found := parts[name]
	if !found {
		names := make([]string, 0, len(parts))
		for name := range parts {
			names = append(names, name)
		}
		slices.Sort(names)
		fmt.Fprintf(os.Stderr, "error: `%s` is no part of the lab, expected one of %s\n", name, strings.Join(names, ", "))
		os.Exit(2)
	}
	os.Exit(run())
}

func upstream(command func() *cobra.Command) func() int {
	return func() int { return cli.Run(command()) }
}

func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}

func runKubectl() int {
	if _, err := logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)); err != nil {
		return fail(err)
	}
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return 0
}

func fail(err error) int {
	fmt.Fprintf(os.Stderr, "error: %v\n", err)
	return 1
}
