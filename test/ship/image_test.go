//go:build ship

package ship_test

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"debug/elf"
	"encoding/pem"
	"maps"
	"slices"
	"strings"
	"testing"
)

// machine is what the ELF header of a program says, by platform.
var machine = map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}

// each runs a test for both targets and both architectures.
func each(t *testing.T, test func(t *testing.T, target, platform string, image *rootfs)) {
	for target, layout := range images(t) {
		if got := slices.Sorted(maps.Keys(layout.images)); !slices.Equal(got, slices.Sorted(maps.Keys(machine))) {
			t.Errorf("%s is built for %q", target, got)
		}
		for platform, image := range layout.images {
			t.Run(target+"/"+platform, func(t *testing.T) { test(t, target, platform, image) })
		}
	}
}

func TestProgramsOfAnImageAreStaticAndOfItsArchitecture(t *testing.T) {
	each(t, func(t *testing.T, target, platform string, image *rootfs) {
		programs := []string{"usr/local/bin/sluice"}
		if target == "ci" {
			programs = append(programs, "bin/busybox")
		}
		for _, name := range programs {
			program, err := elf.NewFile(bytes.NewReader(image.content[name]))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if program.Machine != machine[platform] {
				t.Errorf("%s is for %s", name, program.Machine)
			}
			for _, segment := range program.Progs {
				if segment.Type == elf.PT_INTERP {
					t.Errorf("%s needs a dynamic linker, and there is none", name)
				}
			}
			if mode := image.files[name].Mode & 0o777; mode != 0o755 {
				t.Errorf("%s has mode %o", name, mode)
			}
		}
	})
}

func TestImagesAreSmall(t *testing.T) {
	const limit = 60 << 20
	each(t, func(t *testing.T, target, platform string, image *rootfs) {
		t.Logf("image size %s %s: %.1f MB unpacked, %.1f MB sent (at most 60)", target, platform, float64(image.unpacked)/1e6, float64(image.compressed)/1e6)
		if image.unpacked > limit || image.unpacked < 10<<20 {
			t.Errorf("%d bytes", image.unpacked)
		}
	})
}

func TestImagesRunAsANumberedUserWhoCanWriteOnlyItsState(t *testing.T) {
	each(t, func(t *testing.T, _, _ string, image *rootfs) {
		// Kubernetes can check runAsNonRoot only of a number.
		if image.Config.User != "65532:65532" {
			t.Errorf("the user is %q", image.Config.User)
		}
		for name, header := range image.files {
			mode, temporary := header.Mode, name == "tmp"
			switch {
			case header.Typeflag == tar.TypeSymlink:
			case temporary && mode&0o7777 != 0o1777:
				t.Errorf("/tmp has mode %o", mode)
			case !temporary && mode&0o002 != 0, mode&0o6000 != 0:
				t.Errorf("%s has mode %o", name, mode)
			case (header.Uid != 0 || header.Gid != 0) && name != "var/lib/sluice":
				t.Errorf("%s belongs to %d:%d", name, header.Uid, header.Gid)
			}
		}
		if state := image.files["var/lib/sluice"]; state == nil || state.Uid != 65532 || state.Gid != 65532 {
			t.Errorf("the state's directory is %+v", state)
		}
	})
}

func TestOnlyTheJobImageHasAShell(t *testing.T) {
	each(t, func(t *testing.T, target, _ string, image *rootfs) {
		shells := 0
		for name := range image.files {
			if strings.HasPrefix(name, "bin/") || strings.HasPrefix(name, "usr/bin/") {
				shells++
			}
		}
		if target == "server" {
			if shells != 0 {
				t.Errorf("%d programs beside sluice", shells)
			}
			if !slices.Equal(image.Config.Entrypoint, []string{"sluice"}) || !slices.Equal(image.Config.Cmd, []string{"serve"}) {
				t.Errorf("it runs %q %q", image.Config.Entrypoint, image.Config.Cmd)
			}
			return
		}
		// A runner starts the shell itself: an entrypoint would be in its way.
		if len(image.Config.Entrypoint) != 0 || !slices.Equal(image.Config.Cmd, []string{"sh"}) {
			t.Errorf("it runs %q %q", image.Config.Entrypoint, image.Config.Cmd)
		}
		for _, name := range []string{"sh", "grep", "cat", "mkdir", "rm", "chmod", "tar", "sed", "awk"} {
			if link := image.files["bin/"+name]; link == nil || link.Linkname != "busybox" {
				t.Errorf("bin/%s is %+v", name, link)
			}
		}
		if len(image.content["usr/share/doc/busybox/copyright"]) == 0 {
			t.Error("busybox comes without its licence")
		}
	})
}

func TestImagesCarryCARootsLicenceAndLabels(t *testing.T) {
	revision := must(t, "git", "-C", root, "-c", "safe.directory=*", "rev-parse", "HEAD")
	each(t, func(t *testing.T, target, _ string, image *rootfs) {
		roots := 0
		for rest := image.content["etc/ssl/certs/ca-certificates.crt"]; ; roots++ {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			if _, err := x509.ParseCertificate(block.Bytes); err != nil {
				t.Errorf("CA root %d: %v", roots, err)
			}
		}
		if roots < 100 {
			t.Errorf("%d CA roots", roots)
		}
		if len(image.content["usr/share/doc/sluice/LICENSE"]) == 0 {
			t.Error("no licence")
		}
		licences := map[string]string{"server": "Apache-2.0", "ci": "Apache-2.0 AND GPL-2.0-only"}
		for label, want := range map[string]string{
			"title": "sluice", "version": version, "revision": revision, "licenses": licences[target],
			"source": "https://gitlab.com/sluice-runners/sluice",
		} {
			if got := image.Config.Labels["org.opencontainers.image."+label]; got != want {
				t.Errorf("label %s is %q, not %q", label, got, want)
			}
		}
	})
}
