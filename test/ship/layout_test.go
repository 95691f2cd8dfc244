//go:build ship

package ship_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// layout is an image in the form of the OCI image specification, version 1: an
// index, and per architecture a manifest, a configuration and layers.
type layout struct {
	digest string             // of the index
	images map[string]*rootfs // by architecture
}

// rootfs is one architecture's image.
type rootfs struct {
	Config struct {
		User       string            `json:"User"`
		Entrypoint []string          `json:"Entrypoint"`
		Cmd        []string          `json:"Cmd"`
		Env        []string          `json:"Env"`
		WorkingDir string            `json:"WorkingDir"`
		Labels     map[string]string `json:"Labels"`
	} `json:"config"`
	files      map[string]*tar.Header // by path without a leading slash
	content    map[string][]byte
	compressed int64 // bytes of all layers, as a registry sends them
	unpacked   int64 // bytes of all files
}

type descriptor struct {
	Digest   string `json:"digest"`
	Size     int64  `json:"size"`
	Platform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	} `json:"platform"`
}

// export pushes the manifest list to a directory and reads all of it.
func export(name, dir string) (*layout, error) {
	if _, err := tool("buildah", "manifest", "push", "--quiet", "--all", name, "oci:"+dir+":it"); err != nil {
		return nil, err
	}
	var top, index struct {
		Manifests []descriptor `json:"manifests"`
	}
	if err := readJSON(filepath.Join(dir, "index.json"), &top); err != nil {
		return nil, err
	}
	if err := readJSON(blob(dir, top.Manifests[0].Digest), &index); err != nil {
		return nil, err
	}
	l := &layout{digest: top.Manifests[0].Digest, images: map[string]*rootfs{}}
	for _, m := range index.Manifests {
		image, err := readImage(dir, m.Digest)
		if err != nil {
			return nil, fmt.Errorf("%s for %s: %w", name, m.Platform.Architecture, err)
		}
		l.images[m.Platform.OS+"/"+m.Platform.Architecture] = image
	}
	return l, nil
}

func readImage(dir, digest string) (*rootfs, error) {
	var manifest struct {
		Config descriptor   `json:"config"`
		Layers []descriptor `json:"layers"`
	}
	if err := readJSON(blob(dir, digest), &manifest); err != nil {
		return nil, err
	}
	image := &rootfs{files: map[string]*tar.Header{}, content: map[string][]byte{}}
	if err := readJSON(blob(dir, manifest.Config.Digest), image); err != nil {
		return nil, err
	}
	for _, layer := range manifest.Layers {
		image.compressed += layer.Size
		if err := image.unpack(blob(dir, layer.Digest)); err != nil {
			return nil, err
		}
	}
	for _, content := range image.content {
		image.unpacked += int64(len(content))
	}
	return image, nil
}

func (r *rootfs) unpack(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := strings.Trim(header.Name, "/")
		r.files[name] = header
		if r.content[name], err = io.ReadAll(reader); err != nil {
			return err
		}
	}
}

func blob(dir, digest string) string {
	return filepath.Join(dir, "blobs", strings.Replace(digest, ":", "/", 1))
}

func readJSON(path string, into any) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
