package fleet

// Fault names one kind of thing that is wrong with a host. The names are what
// doctor prints as codes: they are never changed.
type Fault string

// The faults for which a host is refused.
const (
	FaultSystemdSilent    Fault = "systemd-silent"
	FaultUnitMissing      Fault = "unit-missing"
	FaultMainProcess      Fault = "main-process-not-runner"
	FaultTwoRunners       Fault = "two-runners"
	FaultRunnerOutside    Fault = "runner-outside-unit"
	FaultSudoNone         Fault = "sudo-none"
	FaultSudoRefused      Fault = "sudo-command-refused"
	FaultOtherConfig      Fault = "other-config"
	FaultTwoSystemIDs     Fault = "two-system-ids"
	FaultIdentityUnread   Fault = "identity-unreadable"
	FaultUnregisters      Fault = "unregisters-at-stop"
	FaultTokenExpires     Fault = "runner-token-expires"
	FaultContainersUnread Fault = "containers-unreadable"
)

// Faults lists them all.
func Faults() []Fault {
	return []Fault{
		FaultSystemdSilent, FaultUnitMissing, FaultMainProcess, FaultTwoRunners, FaultRunnerOutside, FaultSudoNone, FaultSudoRefused,
		FaultOtherConfig, FaultTwoSystemIDs, FaultIdentityUnread, FaultUnregisters, FaultTokenExpires, FaultContainersUnread,
	}
}

// Refusal is one reason against draining a host, with its kind.
type Refusal struct {
	Fault Fault
	Err   *Error
}

func refuse(fault Fault, err *Error) *Refusal { return &Refusal{Fault: fault, Err: err} }
