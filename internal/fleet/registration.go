package fleet

// Registration says what stands behind a fleet's VMs in GitLab, and what is
// removed there once a VM is gone.
type Registration string

// The registrations.
const (
	// RegistrationFleet is one runner entry with one token that all VMs share:
	// the deleted VM's own manager is removed.
	RegistrationFleet Registration = "fleet"
	// RegistrationIndividual is one runner entry per VM, which its create script
	// registers: the deleted VM's entry is removed.
	RegistrationIndividual Registration = "individual"
	// RegistrationNone is one runner entry, and nothing is removed: GitLab itself
	// drops a manager that has been silent for a week.
	RegistrationNone Registration = "none"
)

// Individual says whether every VM of the fleet has a runner entry of its own.
func (s Spec) Individual() bool { return s.Registration == RegistrationIndividual }
