package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// needed are the host's programs and the Debian packages they come from.
var needed = []struct{ program, pkg string }{
	{"mmdebstrap", "mmdebstrap"},
	{"systemd-nspawn", "systemd-container"},
	{"mkfs.btrfs", "btrfs-progs"},
	{"ip", "iproute2"},
	{"nsenter", "util-linux"},
	{"ssh", "openssh-client"},
	{"chroot", "coreutils"},
}

// CheckHost sees that this host can boot machines: root, and the programs, which apt
// installs where they are missing.
func CheckHost(ctx context.Context, log io.Writer) error {
	if os.Geteuid() != 0 {
		return errors.New("booting machines needs root")
	}
	if missing := missingPackages(); len(missing) > 0 {
		_, _ = fmt.Fprintf(log, "installing %s\n", strings.Join(missing, " "))
		if err := install(ctx, log, missing); err != nil {
			return err
		}
		if still := missingPackages(); len(still) > 0 {
			return fmt.Errorf("apt installed %s, but their programs are not found", strings.Join(still, " "))
		}
	}
	// A bridge, veth pairs, btrfs and fuse: the kernel has them, or the machines cannot be.
	for _, device := range []string{"/dev/fuse", "/dev/net/tun", "/dev/loop-control"} {
		if _, err := os.Stat(device); err != nil {
			return fmt.Errorf("this host's kernel gives no %s: %w", device, err)
		}
	}
	return nil
}

func missingPackages() []string {
	var missing []string
	for _, n := range needed {
		if _, err := exec.LookPath(n.program); err != nil {
			missing = append(missing, n.pkg)
		}
	}
	return missing
}

func install(ctx context.Context, log io.Writer, packages []string) error {
	for _, args := range [][]string{
		{"update", "-q"},
		append([]string{"install", "-q", "-y", "--no-install-recommends"}, packages...),
	} {
		apt := exec.CommandContext(ctx, "apt-get", args...) //nolint:gosec // fixed package names
		apt.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		apt.Stdout, apt.Stderr = log, log
		if err := apt.Run(); err != nil {
			return fmt.Errorf("apt-get %s: %w; install %s by hand", args[0], err, strings.Join(packages, " "))
		}
	}
	return nil
}
