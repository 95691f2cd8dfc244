package exec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/provider/providertest"
)

// plainCloud is a directory of VMs and the three plain scripts that
// deploy/exec/vm.sh wraps. A name can be there only once.
type plainCloud struct {
	toy
	notes string // SLUICE_STATE of the fleet
}

func newPlainCloud(t *testing.T, stateDir string) *plainCloud {
	t.Helper()
	w := &plainCloud{toy: *newToy(t), notes: filepath.Join(stateDir, testFleet, "state")}
	for name, body := range map[string]string{
		"create-vm.sh": `while [ -e hold-create ]; do sleep 0.02; done
[ ! -e "vms/$1" ] || { echo "$1 exists" >&2; exit 1; }
echo "id-$(od -An -N6 -tx1 /dev/urandom | tr -d ' \n')" >"new/$1" && mv "new/$1" "vms/$1" && echo "created $1"`,
		"delete-vm.sh": `while [ -e hold-delete ]; do sleep 0.02; done
rm "vms/$1" && echo "deleted $1"`,
		"list-vms.sh": `[ ! -e blind ] || { echo "cloud is away" >&2; exit 1; }
for vm in vms/*; do [ ! -e "$vm" ] || echo "$(basename "$vm") $(cat "$vm") 127.0.0.1:22"; done`,
	} {
		path := filepath.Join(w.dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\nset -e\ncd "+w.dir+"\n"+body+"\n"), 0o700); err != nil { //nolint:gosec // a command
			t.Fatal(err)
		}
	}
	return w
}

// Appear implements providertest.World.
func (w *plainCloud) Appear(t *testing.T, vm string, labels map[string]string) string {
	t.Helper()
	appeared++
	id := "id-appeared-" + vm
	w.put(t, "vms/"+vm, id+"\n")
	if by := labels[fleet.LabelOperation]; by != "" {
		if err := os.WriteFile(filepath.Join(w.notes, vm+".operation"), []byte(by+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return id
}

// Exists implements providertest.World.
func (w *plainCloud) Exists(t *testing.T, id string) bool {
	t.Helper()
	for _, vm := range w.ids(t) {
		if strings.TrimSpace(w.read(t, "vms/"+vm)) == id {
			return true
		}
	}
	return false
}

// plain hides what the plain scripts cannot do from the suite.
type plain struct {
	providertest.World
	providertest.Blinder
	providertest.Holder
}

func TestTheDeployedExampleKeepsTheContract(t *testing.T) {
	wrapper, err := filepath.Abs("../../../deploy/exec/vm.sh")
	if err != nil {
		t.Fatal(err)
	}
	providertest.Run(t, func(t *testing.T) providertest.Setup {
		stateDir := t.TempDir()
		w := newPlainCloud(t, stateDir)
		cfg := Config{
			Fleet: testFleet, StateDir: stateDir, Commands: map[Verb][]string{},
			Env: map[string]Value{"VM_SCRIPTS": {Literal: w.dir}},
		}
		for _, verb := range []Verb{VerbList, VerbDescribe, VerbPrepare, VerbCreate, VerbDelete} {
			cfg.Commands[verb] = []string{wrapper}
		}
		return providertest.Setup{
			Machines: newProvider(t, cfg), World: plain{w, w, w}, Fleet: testFleet,
			Image: "fedora-43", Exact: "fedora-43", UniqueNames: true, HidesImage: true,
		}
	})
}
