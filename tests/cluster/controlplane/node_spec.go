package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// nodeSpec is what a stand-in node is made to be: one file of the nodes folder,
// named as the node, a `key=value` a line.
type nodeSpec struct {
	name      string
	ip        string      // InternalIP; the one key that must be there
	machineID string      // 32 hex digits; from the name when absent
	hostname  string      // the Hostname address and label; the name when absent
	gpus      int         // GPUs with a working driver
	runtime   runtimeMode // how containerd was set up for them
	ready     readiness   // what the node reports of itself
	pull      bool        // whether images can be pulled
	processes bool        // whether the commands of pods are run, as processes of this machine
	cpu       resource.Quantity
	memory    resource.Quantity
	arch      string
	labels    map[string]string
	taints    []v1.Taint
}

// runtimeMode is how a node's containerd reaches GPUs.
type runtimeMode string

const (
	runtimeDefault runtimeMode = "default" // nvidia is the default runtime: every container sees GPUs
	runtimeClass   runtimeMode = "class"   // only pods of a RuntimeClass with handler `nvidia` do
	runtimeNone    runtimeMode = "none"    // there is no runtime `nvidia`: no container does
)

// readiness is what a node says of itself.
type readiness string

const (
	readyTrue   readiness = "true"
	readyFalse  readiness = "false"  // posts Ready=False, as before a network plugin is installed
	readySilent readiness = "silent" // posts nothing, as a node that lost its power
)

// controlPlaneLabel marks the nodes that kubeadm makes control planes, and is the key of their taint.
const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

// readNodeSpec returns the node that the file at path describes.
func readNodeSpec(path string) (*nodeSpec, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseNodeSpec(filepath.Base(path), string(text))
}

func parseNodeSpec(name, text string) (*nodeSpec, error) {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return nil, fmt.Errorf("`%s` can't name a node: %s", name, problems[0])
	}
	spec := &nodeSpec{
		name:      name,
		machineID: digestOf("machine", name),
		hostname:  name,
		runtime:   runtimeDefault,
		ready:     readyTrue,
		pull:      true,
		cpu:       resource.MustParse("8"),
		memory:    resource.MustParse("32Gi"),
		arch:      "amd64",
		labels:    map[string]string{},
	}
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		if err := spec.set(key, value); err != nil {
			return nil, fmt.Errorf("node `%s`: %w", name, err)
		}
	}
	if spec.ip == "" {
		return nil, fmt.Errorf("node `%s` has no `ip`", name)
	}
	return spec, nil
}

func (spec *nodeSpec) set(key, value string) (err error) {
	switch key {
	case "ip":
		if net.ParseIP(value) == nil {
			err = errors.New("not an address")
		}
		spec.ip = value
	case "machine-id":
		spec.machineID = value
	case "hostname":
		spec.hostname = value
	case "gpus":
		spec.gpus, err = strconv.Atoi(value)
		if err == nil && spec.gpus < 0 {
			err = errors.New("less than none")
		}
	case "runtime":
		spec.runtime = runtimeMode(value)
		err = expect(spec.runtime, runtimeDefault, runtimeClass, runtimeNone)
	case "ready":
		spec.ready = readiness(value)
		err = expect(spec.ready, readyTrue, readyFalse, readySilent)
	case "pull":
		spec.pull, err = strconv.ParseBool(value)
	case "processes":
		spec.processes, err = strconv.ParseBool(value)
	case "cpu":
		spec.cpu, err = resource.ParseQuantity(value)
	case "memory":
		spec.memory, err = resource.ParseQuantity(value)
	case "arch":
		spec.arch = value
	case "label":
		label, text, _ := strings.Cut(value, ":")
		spec.labels[label] = text
	case "taint":
		var taint v1.Taint
		taint, err = parseTaint(value)
		spec.taints = append(spec.taints, taint)
	case "control-plane":
		spec.labels[controlPlaneLabel] = ""
		spec.taints = append(spec.taints, v1.Taint{Key: controlPlaneLabel, Effect: v1.TaintEffectNoSchedule})
	default:
		return fmt.Errorf("unknown key `%s`, expected one of ip, machine-id, hostname, gpus, runtime, ready, pull, "+
			"processes, cpu, memory, arch, label, taint, control-plane", key)
	}
	if err != nil {
		return fmt.Errorf("`%s` of `%s`: %w", value, key, err)
	}
	return nil
}

func expect[T ~string](value T, known ...T) error {
	words := make([]string, len(known))
	for i, word := range known {
		if value == word {
			return nil
		}
		words[i] = string(word)
	}
	return fmt.Errorf("expected one of %s", strings.Join(words, ", "))
}

// parseTaint reads `key:Effect` or `key:value:Effect`.
func parseTaint(text string) (v1.Taint, error) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return v1.Taint{}, errors.New("expected KEY:EFFECT or KEY:VALUE:EFFECT")
	}
	taint := v1.Taint{Key: parts[0], Effect: v1.TaintEffect(parts[len(parts)-1])}
	if len(parts) == 3 {
		taint.Value = parts[1]
	}
	return taint, expect(taint.Effect, v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute)
}

// digestOf returns 32 hex digits, always the same for one kind and name.
func digestOf(kind, name string) string {
	sum := sha256.Sum256([]byte(kind + "/" + name))
	return hex.EncodeToString(sum[:16])
}

// runCheckNode tells whether each file describes a node.
func runCheckNode() int {
	for _, path := range os.Args[1:] {
		if _, err := readNodeSpec(path); err != nil {
			return fail(err)
		}
	}
	return 0
}
