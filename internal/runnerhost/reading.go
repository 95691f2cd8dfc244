package runnerhost

import (
	"fmt"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// readReading turns an answer into evidence. What is missing or makes no sense
// stays empty and is named in Problem.
func readReading(t engine.Target, takenAt time.Time, a answer) fleet.HostReading {
	r := fleet.HostReading{TakenAt: takenAt, Subject: fleet.Subject{Ref: t.Ref}}
	r.Subject.Instance = t.Instance
	r.Subject.BootID = a.one("boot_id")
	r.Subject.SystemID = a.one("system_id")
	var missing []string
	if r.Subject.BootID == "" {
		missing = append(missing, "no boot id")
	}
	unit, ok := readUnit(a)
	if !ok {
		missing = append(missing, "systemd does not say how the unit is")
	}
	r.Unit = unit
	r.DropIn = readDropIn(a)
	if problem := readContainers(&r, a); problem != "" {
		missing = append(missing, problem)
	}
	r.Problem = strings.Join(missing, "; ")
	return r
}

// readUnit reads all of the unit's state or none of it: a state without its
// process id proves nothing.
func readUnit(a answer) (fleet.UnitState, bool) {
	pid, ok := a.number("unit.MainPID")
	if !ok || pid < 0 || a.one("unit.ActiveState") == "" || a.one("unit.SubState") == "" {
		return fleet.UnitState{}, false
	}
	signal, _ := a.number("unit.KillSignal")
	return fleet.UnitState{
		ActiveState: a.one("unit.ActiveState"),
		SubState:    a.one("unit.SubState"),
		Result:      a.one("unit.Result"),
		MainPID:     int(pid),
		KillSignal:  int(signal),
		StopForever: a.one("unit.TimeoutStopUSec") == "infinity",
		Restart:     a.one("unit.Restart"),
	}, true
}

// readDropIn counts a drop-in as effective if it is there and systemd deviates
// from none of its values.
func readDropIn(a answer) fleet.DropIn {
	number, _ := a.number("dropin.number")
	present := a.yes("dropin.present")
	return fleet.DropIn{
		Present:   present,
		Effective: present && len(a["dropin.deviation"]) == 0 && a.one("unit.ActiveState") != "",
		Owner:     a.one("dropin.owner"),
		Operation: a.one("dropin.operation"),
		Number:    number,
	}
}

// readContainers yields what is wrong with podman's answer; "" = nothing is.
func readContainers(r *fleet.HostReading, a answer) string {
	status := a.one("podman.status")
	if status != "0" {
		return podmanProblem(status, a.one("podman.error"))
	}
	list, err := parseContainers(strings.Join(a["podman.line"], "\n"))
	if err != nil {
		return fmt.Sprintf("podman's list cannot be read: %v", err)
	}
	r.Containers, r.ContainersKnown = list, true
	return ""
}

func podmanProblem(status, said string) string {
	switch {
	case status == "":
		return "podman was not asked"
	case status == "127":
		return "podman is not installed"
	case status == "124" || status == "137":
		return "podman did not answer within 8 s"
	case said == "":
		return "podman ended with status " + status
	default:
		return said
	}
}
