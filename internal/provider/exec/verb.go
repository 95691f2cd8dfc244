package exec

// Verb is what a command is asked to do.
type Verb string

// The verbs. VerbCheck and VerbRemains have defaults built from the others.
const (
	VerbList     Verb = "list"     // every instance of the fleet
	VerbDescribe Verb = "describe" // the instances that carry one VM's name
	VerbPrepare  Verb = "prepare"  // resolve the image, check what a create needs; changes nothing
	VerbCheck    Verb = "check"    // look a prepared request up once more; optional
	VerbCreate   Verb = "create"   // make the VM; may take long
	VerbDelete   Verb = "delete"   // delete one instance; may take long
	VerbRemains  Verb = "remains"  // what is left of an instance; optional
)

// Verbs lists every verb in the order of the documentation.
func Verbs() []Verb {
	return []Verb{VerbList, VerbDescribe, VerbPrepare, VerbCheck, VerbCreate, VerbDelete, VerbRemains}
}

// Long says whether commands of the verb run in a session of their own.
func (v Verb) Long() bool { return v == VerbCreate || v == VerbDelete }

// Optional says whether a configuration may leave the verb out.
func (v Verb) Optional() bool { return v == VerbCheck || v == VerbRemains }

func (v Verb) known() bool {
	for _, verb := range Verbs() {
		if v == verb {
			return true
		}
	}
	return false
}
