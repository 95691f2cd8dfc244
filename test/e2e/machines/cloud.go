package machines

import (
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
	// DeleteDelay holds a delete before it does anything.
	DeleteDelay time.Duration `json:"delete_delay,omitempty"`
	// FailCreate makes a create fail with this exit code and make nothing, as often as
	// FailTimes says (0 = always).
	FailCreate int `json:"fail_create,omitempty"`
	FailTimes  int `json:"fail_times,omitempty"`
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
