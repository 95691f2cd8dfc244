package machines

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

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
