package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// blob is a part of an OCI image, stored by its digest.
type blob struct {
	content []byte
	digest  string // with its algorithm in front
}

// words collects a flag that may be given several times.
type words []string

func (w *words) String() string { return strings.Join(*w, " ") }

func (w *words) Set(word string) error {
	*w = append(*w, word)
	return nil
}

// runImage is `lab image`: it writes an OCI archive, for `ctr images import`, of
// an image with one layer that holds the files and links it is given.
func runImage() int {
	var files, links, entrypoint, environment words
	flags := flag.NewFlagSet("image", flag.ExitOnError)
	output := flags.String("output", "", "file to write")
	name := flags.String("name", "", "the image's reference")
	flags.Var(&entrypoint, "entrypoint", "a word of what to run (repeat)")
	flags.Var(&files, "file", "SOURCE:PATH of a program to put in (repeat)")
	flags.Var(&links, "link", "TARGET:PATH of a symbolic link to put in (repeat)")
	flags.Var(&environment, "env", "NAME=VALUE of the program's environment (repeat)")
	_ = flags.Parse(os.Args[1:])
	if *output == "" || *name == "" || len(entrypoint) == 0 {
		return fail(errors.New("`image` needs --output, --name and --entrypoint"))
	}
	layer, err := layerOf(files, links)
	if err != nil {
		return fail(err)
	}
	archive, err := archiveOf(layer, *name, entrypoint, environment)
	if err != nil {
		return fail(err)
	}
	if err := os.WriteFile(*output, archive, 0o644); err != nil {
		return fail(err)
	}
	return 0
}

func layerOf(files, links words) (blob, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, folder := range []string{"bin", "usr", "usr/bin", "tmp"} {
		header := &tar.Header{Name: folder + "/", Typeflag: tar.TypeDir, Mode: 0o755}
		if err := writer.WriteHeader(header); err != nil {
			return blob{}, err
		}
	}
	for _, file := range files {
		source, path, _ := strings.Cut(file, ":")
		content, err := os.ReadFile(source)
		if err != nil {
			return blob{}, err
		}
		header := &tar.Header{Name: strings.TrimPrefix(path, "/"), Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}
		if err := writer.WriteHeader(header); err != nil {
			return blob{}, err
		}
		if _, err := writer.Write(content); err != nil {
			return blob{}, err
		}
	}
	for _, link := range links {
		target, path, _ := strings.Cut(link, ":")
		header := &tar.Header{Name: strings.TrimPrefix(path, "/"), Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}
		if err := writer.WriteHeader(header); err != nil {
			return blob{}, err
		}
	}
	if err := writer.Close(); err != nil {
		return blob{}, err
	}
	return blobOf(buffer.Bytes()), nil
}

func archiveOf(layer blob, name string, entrypoint, environment []string) ([]byte, error) {
	type fields = map[string]any
	config, err := jsonBlob(fields{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       fields{"Entrypoint": entrypoint, "Env": append([]string{"PATH=/usr/bin:/bin"}, environment...)},
		"rootfs":       fields{"type": "layers", "diff_ids": []string{layer.digest}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := jsonBlob(fields{
		"schemaVersion": 2,
		"mediaType":     "application/vnd.oci.image.manifest.v1+json",
		"config":        config.descriptor("application/vnd.oci.image.config.v1+json"),
		"layers":        []fields{layer.descriptor("application/vnd.oci.image.layer.v1.tar")},
	})
	if err != nil {
		return nil, err
	}
	described := manifest.descriptor("application/vnd.oci.image.manifest.v1+json")
	described["annotations"] = fields{"io.containerd.image.name": name}
	index, err := jsonBlob(fields{"schemaVersion": 2, "manifests": []fields{described}})
	if err != nil {
		return nil, err
	}

	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	add := func(path string, content []byte) {
		if err == nil {
			err = writer.WriteHeader(&tar.Header{Name: path, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))})
		}
		if err == nil {
			_, err = writer.Write(content)
		}
	}
	add("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	add("index.json", index.content)
	for _, part := range []blob{layer, config, manifest} {
		add("blobs/"+strings.ReplaceAll(part.digest, ":", "/"), part.content)
	}
	if err != nil {
		return nil, err
	}
	return buffer.Bytes(), writer.Close()
}

func jsonBlob(value any) (blob, error) {
	text, err := json.Marshal(value)
	return blobOf(text), err
}

func blobOf(content []byte) blob {
	return blob{content: content, digest: fmt.Sprintf("sha256:%x", sha256.Sum256(content))}
}

func (b blob) descriptor(mediaType string) map[string]any {
	return map[string]any{"mediaType": mediaType, "digest": b.digest, "size": len(b.content)}
}
