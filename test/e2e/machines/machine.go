package machines

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
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

var machineName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,40}$`)

// Create makes and starts a machine and returns while it boots. Errors: ErrNameTaken.
func (w *World) Create(ctx context.Context, spec Spec) (*Machine, error) {
	if !machineName.MatchString(spec.Name) {
		return nil, fmt.Errorf("machine name %q: use lower-case letters, digits and dashes", spec.Name)
	}
	m, err := w.register(spec)
	if err != nil {
		return nil, err
	}
	if err := w.build(ctx, m, spec); err != nil {
		return nil, errors.Join(err, w.destroy(context.WithoutCancel(ctx), m))
	}
	return m, nil
}

// register writes the record first: what is recorded can be cleaned up.
func (w *World) register(spec Spec) (*Machine, error) {
	unlock, err := w.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	records, err := w.records()
	if err != nil {
		return nil, err
	}
	for _, other := range records {
		if other.Name == spec.Name {
			return nil, fmt.Errorf("%w: %s is %s", ErrNameTaken, spec.Name, other.ID)
		}
	}
	address, err := w.nextAddress(records)
	if err != nil {
		return nil, err
	}
	random := make([]byte, 22)
	_, _ = rand.Read(random)
	m := &Machine{
		ID: "i-" + hex.EncodeToString(random[:6]), UUID: hex.EncodeToString(random[6:]),
		Name: spec.Name, Image: spec.Image, Labels: spec.Labels, Address: address,
		State: StateStarting, CreatedAt: time.Now().UTC(), World: w.Name,
	}
	return m, writeJSON(w.record(m.ID), m)
}

// nextAddress gives addresses in turn, so that a machine made anew has another one.
func (w *World) nextAddress(records []*Machine) (string, error) {
	file := filepath.Join(w.Dir(), "next-address.json")
	next := firstHost
	if err := readJSON(file, &next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for range lastHost - firstHost {
		address := fmt.Sprintf("10.77.0.%d", next)
		next++
		if next > lastHost {
			next = firstHost
		}
		if !slices.ContainsFunc(records, func(m *Machine) bool { return m.Address == address }) {
			return address, writeJSON(file, next)
		}
	}
	return "", errors.New("no address is free")
}

func (w *World) build(ctx context.Context, m *Machine, spec Spec) error {
	if err := w.tree.Snapshot(ctx, m.root(w)); err != nil {
		return err
	}
	if err := w.seed(m, spec); err != nil {
		return err
	}
	if err := m.namespace().makeMachine(ctx, w.cloud(), m.port(), m.Address); err != nil {
		return err
	}
	return w.PowerOn(m)
}

// PowerOn starts a machine that is off.
func (w *World) PowerOn(m *Machine) error {
	log, err := os.OpenFile(filepath.Join(w.Dir(), "logs", m.Name+"."+m.ID+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // our own directory
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(w.Settings.Program, "supervise", w.Name, m.ID) //nolint:gosec,noctx // outlives the caller on purpose
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	m.Supervisor = HandleOf(cmd.Process.Pid)
	go func() { _ = cmd.Wait() }()
	return writeJSON(w.record(m.ID), m)
}

// PowerCut takes a machine's power away at once; PowerOn brings it back.
func (w *World) PowerCut(ctx context.Context, m *Machine) error {
	m.Supervisor.Kill()
	return m.group().kill(ctx)
}

// Hang freezes a machine, or lets it go on.
func (w *World) Hang(m *Machine, hung bool) error { return m.group().freeze(hung) }

// Partition pulls a machine's cable, or plugs it back in.
func (w *World) Partition(ctx context.Context, m *Machine, cut bool) error {
	return w.cloud().plug(ctx, m.port(), !cut)
}

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
	key, err := os.ReadFile(filepath.Join(root, "etc/ssh/ssh_host_ed25519_key.pub")) //nolint:gosec // our own tree
	if err != nil || len(key) == 0 {
		return nil
	}
	return []string{strings.TrimSpace(string(key))}
}

// List describes every machine, oldest first.
func (w *World) List() ([]*Machine, error) {
	records, err := w.records()
	if err != nil {
		return nil, err
	}
	var all []*Machine
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
