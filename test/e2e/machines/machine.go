package machines

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/test/e2e/golden"
)

// State is what the cloud says of a machine.
type State string

// The states. A machine that was deleted has none: it is not found.
const (
	StateStarting State = "starting" // no host key yet
	StateRunning  State = "running"
	StateOff      State = "off"
)

// ErrNotFound says that no machine has this id.
var ErrNotFound = errors.New("no such machine")

// ErrNameTaken says that a machine of this name exists.
var ErrNameTaken = errors.New("a machine of this name exists")

// Spec is what a new machine shall be.
type Spec struct {
	Name   string            `json:"name"`
	Image  string            `json:"image"` // recorded in the guest as /etc/e2e-image
	Labels map[string]string `json:"labels"`
	Files  map[string]string `json:"files"` // further files, mode 0644, root's
}

// Machine is a machine's record.
type Machine struct {
	ID         string            `json:"id"` // new for each creation
	Name       string            `json:"name"`
	Image      string            `json:"image"`
	Labels     map[string]string `json:"labels"`
	Address    string            `json:"address"`
	HostKeys   []string          `json:"host_keys"` // authorized_keys format; empty before the first boot is through
	State      State             `json:"state"`
	CreatedAt  time.Time         `json:"created_at"`
	UUID       string            `json:"uuid"` // becomes its machine-id
	World      string            `json:"world"`
	Supervisor Handle            `json:"supervisor"`
}

func (m *Machine) group() group         { return group(namePrefix + m.World + "-" + m.ID) }
func (m *Machine) namespace() namespace { return namespace(m.group()) }
func (m *Machine) port() string         { return "v" + strings.TrimPrefix(m.ID, "i-") }
func (m *Machine) root(w *World) string {
	return filepath.Join(w.tree.Pool, "machines", w.Name+"."+m.ID)
}

func (w *World) record(id string) string { return filepath.Join(w.Dir(), "machines", id+".json") }

// Describe says what is known of the machine with this id. Errors: ErrNotFound.
func (w *World) Describe(id string) (*Machine, error) {
	var m Machine
	err := readJSON(w.record(id), &m)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	if err != nil {
		return nil, err
	}
	m.HostKeys = hostKeys(m.root(w))
	switch {
	case !m.Supervisor.Alive() && !m.group().populated():
		m.State = StateOff
		if m.Supervisor.PID == 0 {
			m.State = StateStarting // its maker has not come to the power button yet
		}
	case len(m.HostKeys) > 0:
		m.State = StateRunning
	default:
		m.State = StateStarting
	}
	return &m, nil
}

// hostKeys reads the keys a guest has made for itself, as a cloud's agent would report.
func hostKeys(root string) []string {
	key, err := os.ReadFile(filepath.Join(root, "etc/ssh/ssh_host_ed25519_key.pub"))
	if err != nil || len(key) == 0 {
		return nil
	}
	return []string{strings.TrimSpace(string(key))}
}

// List describes every machine, oldest first; never nil without an error.
func (w *World) List() ([]*Machine, error) {
	records, err := w.records()
	if err != nil {
		return nil, err
	}
	all := []*Machine{}
	for _, record := range records {
		m, err := w.Describe(record.ID)
		if errors.Is(err, ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *Machine) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return all, nil
}

func (w *World) records() ([]*Machine, error) {
	files, err := filepath.Glob(filepath.Join(w.Dir(), "machines", "*.json"))
	if err != nil {
		return nil, err
	}
	var all []*Machine
	for _, file := range files {
		var m Machine
		if err := readJSON(file, &m); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		all = append(all, &m)
	}
	return all, nil
}

// Delete ends the machine with this id and removes its disk and cable; its record goes
// last. Errors: ErrNotFound.
func (w *World) Delete(ctx context.Context, id string) error {
	m, err := w.Describe(id)
	if err != nil {
		return err
	}
	return w.destroy(ctx, m)
}

func (w *World) destroy(ctx context.Context, m *Machine) error {
	m.Supervisor.Kill()
	if err := m.group().kill(ctx); err != nil {
		return err
	}
	if err := m.group().remove(); err != nil {
		return err
	}
	if err := m.namespace().remove(ctx); err != nil {
		return err
	}
	if err := golden.DeleteSubvolume(ctx, m.root(w)); err != nil {
		return err
	}
	return os.Remove(w.record(m.ID))
}
