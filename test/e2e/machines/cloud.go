package machines

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Weather is how the cloud's front desk behaves, for whoever asks it through the
// provider's commands; the tests' own hand on machines is not affected.
type Weather struct {
	// Images that can be created. Empty: those of the world's making, v1 and v2.
	Images []string `json:"images,omitempty"`
	// CreateDelay holds a create before it makes anything, LateCreate after that.
	CreateDelay time.Duration `json:"create_delay,omitempty"`
	LateCreate  time.Duration `json:"late_create,omitempty"`
	// CheckDelay holds a check, the last look before a delete.
	CheckDelay time.Duration `json:"check_delay,omitempty"`
	// DeleteDelay holds a delete before it does anything.
	DeleteDelay time.Duration `json:"delete_delay,omitempty"`
	// FailCreate makes a create fail with this exit code and make nothing, as often as
	// FailTimes says (0 = always).
	FailCreate int `json:"fail_create,omitempty"`
	FailTimes  int `json:"fail_times,omitempty"`
}

// Visit is one call at the front desk.
type Visit struct {
	At       time.Time `json:"at"`
	Verb     string    `json:"verb"`
	VM       string    `json:"vm"`
	Instance string    `json:"instance"`
	Ended    bool      `json:"ended"` // the call's end, not its beginning
	Error    string    `json:"error,omitempty"`
	// Runner is, of a delete, what systemd said of the runner's unit in that moment:
	// ActiveState, Result, MainPID, ExecMainExitTimestamp and the boot id.
	Runner map[string]string `json:"runner,omitempty"`
}

func (w *World) visitFile() string { return filepath.Join(w.Dir(), "visits.jsonl") }

// Record notes a call.
func (w *World) Record(v Visit) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(w.visitFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// Visits lists the calls so far, oldest first.
func (w *World) Visits() ([]Visit, error) {
	content, err := os.ReadFile(w.visitFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []Visit
	for line := range bytes.Lines(content) {
		var v Visit
		if err := json.Unmarshal(line, &v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, err
}

func (w *World) weatherFile() string { return filepath.Join(w.Dir(), "weather.json") }

// Weather reads how the front desk behaves.
func (w *World) Weather() (Weather, error) {
	var weather Weather
	err := readJSON(w.weatherFile(), &weather)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if len(weather.Images) == 0 {
		weather.Images = []string{"v1", "v2"}
	}
	return weather, err
}

// SetWeather changes how the front desk behaves from now on.
func (w *World) SetWeather(weather Weather) error { return writeJSON(w.weatherFile(), weather) }

// Failing says with which exit code the create at hand has to fail, 0 for not at all,
// and counts it.
func (w *World) Failing() (int, error) {
	unlock, err := w.lock()
	if err != nil {
		return 0, err
	}
	defer unlock()
	weather, err := w.Weather()
	if err != nil || weather.FailCreate == 0 {
		return 0, err
	}
	code := weather.FailCreate
	if weather.FailTimes > 0 {
		weather.FailTimes--
		if weather.FailTimes == 0 {
			weather.FailCreate = 0
		}
		err = w.SetWeather(weather)
	}
	return code, err
}

// Remains lists what is left of a machine: its record, disk, cable and processes.
func (w *World) Remains(id string) ([]string, error) {
	m := &Machine{ID: id, World: w.Name}
	left := []string{}
	for what, there := range map[string]bool{
		"machine " + id:      fileExists(w.record(id)),
		"disk of " + id:      fileExists(m.root(w)),
		"network of " + id:   m.namespace().exists(),
		"processes of " + id: m.group().populated(),
	} {
		if there {
			left = append(left, what)
		}
	}
	slices.Sort(left)
	return left, nil
}

func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
