package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// serveLogs answers what the API server asks a kubelet for a container's log, for pods whose commands run here,
// and returns the port on which it does.
func (s *standIn) serveLogs(ctx context.Context, certificate, key string) (int32, error) {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return 0, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.log)
	server := &http.Server{Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}}
	go func() {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			klog.ErrorS(err, "Logs are served no longer")
		}
	}()
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	return int32(listener.Addr().(*net.TCPAddr).Port), nil
}

func (s *standIn) log(answer http.ResponseWriter, request *http.Request) {
	run := s.processOf(request.PathValue("namespace") + "/" + request.PathValue("pod"))
	if run == nil {
		http.Error(answer, "no command of this pod runs here", http.StatusNotFound)
		return
	}
	file, err := os.Open(run.logFile())
	if err != nil {
		http.Error(answer, err.Error(), http.StatusInternalServerError)
		return
	}
	defer file.Close()
	query := request.URL.Query()
	since, _ := time.Parse(time.RFC3339, query.Get("sinceTime"))
	lines := bufio.NewReader(file)
	half := ""
	flush, _ := answer.(http.Flusher)
	for {
		ended, _, grew := run.state()
		for {
			line, err := lines.ReadString('\n')
			line = half + line
			if errors.Is(err, io.EOF) {
				// The rest of a line that is being written comes later.
				half = line
				break
			}
			if err != nil {
				return
			}
			half = ""
			stamp, text, _ := strings.Cut(line, " ")
			if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil && at.Before(since) {
				continue
			}
			if query.Get("timestamps") != "true" {
				line = text
			}
			if _, err := io.WriteString(answer, line); err != nil {
				return
			}
		}
		flush.Flush()
		if ended || query.Get("follow") != "true" {
			return
		}
		select {
		case <-grew:
		case <-request.Context().Done():
			return
		}
	}
}

// processOf returns the command that runs here for a pod, by its namespace and name.
func (s *standIn) processOf(key string) *process {
	object, found, err := s.pods.GetIndexer().GetByKey(key)
	if err != nil || !found {
		return nil
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	run := s.attempts[string(object.(*v1.Pod).UID)]
	if run == nil {
		return nil
	}
	return run.process
}
