package access

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Action is what a rule allows: a kind of operation, or one of these.
type Action string

// The actions beside the kinds of operations.
const (
	ActionRead     Action = "read"     // fleets, VMs, operations, events, doctor
	ActionPlan     Action = "plan"     // say what asking would do
	ActionOverride Action = "override" // no_drain, take_over, parallel, and policies harsher than the fleet's own
	// Of a drain that is under way, whoever asked for it.
	ActionExtend    Action = "extend"     // make its cap later
	ActionSetPolicy Action = "set-policy" // put it under another policy; with override, a harsher one than the fleet's own
	ActionSkipDrain Action = "skip-drain" // do not wait for its jobs; needs override too
)

// Actions lists them all.
func Actions() []Action {
	list := []Action{ActionRead, ActionPlan}
	for _, kind := range fleet.Kinds() {
		list = append(list, Action(kind))
	}
	return append(list, ActionExtend, ActionSetPolicy, ActionSkipDrain, ActionOverride)
}

// identity are the claims that say who asks, and not how; ids before paths,
// which can be renamed and then be somebody else's.
var identity = []string{
	"project_id", "namespace_id", "project_path", "namespace_path", "sub", "user_id", "user_login", "user_email", "groups_direct",
}

// owners are those of which every rule names one: the others are true of
// anybody's project on a shared instance.
var owners = identity[:4]

// Owners lists the claims of which each rule must name one.
func Owners() []string { return slices.Clone(owners) }

// Condition is what one claim must be: one of the patterns.
type Condition struct {
	Claim string
	Any   []Pattern
}

// Rule allows actions on fleets to the jobs whose claims fit. What no rule
// allows is refused.
type Rule struct {
	Issuer string // "" = any that is configured
	Claims []Condition
	Allow  []Action
	Fleets []string
	VMs    []Pattern     // empty = all of the fleets'
	MaxCap time.Duration // the longest drain that may be asked for; 0 = the fleet's own rules
}

// Request is what somebody wants.
type Request struct {
	Action     Action
	Fleet      string
	VMs        []string
	Cap        time.Duration // asked for; 0 = the fleet's
	WaitsUntil time.Duration // the end of a wait for jobs beyond the cap that is asked for; 0 = none is
	Overrides  []string      // the parts of it that only ActionOverride allows, in words
}

func (r Request) changes() bool { return r.Action != ActionRead && r.Action != ActionPlan }

// ruling is what one rule says of a request.
type ruling struct {
	stranger bool // the rule is about others: what it asks for is not the caller's to know
	why      string
}

// judge finds the first rule that allows the request, by its place; -1 = none
// does, and rulings says of each why.
func judge(rules []Rule, c *Claims, r Request) (allowed int, rulings []ruling) {
	for i := range rules {
		verdict := rules[i].ruling(c, r)
		if verdict.why == "" {
			return i, nil
		}
		rulings = append(rulings, verdict)
	}
	return -1, rulings
}

// ruling says why the rule does not allow the request; why is "" if it does.
func (rule *Rule) ruling(c *Claims, r Request) ruling {
	if rule.Issuer != "" && rule.Issuer != c.Issuer {
		return ruling{stranger: true, why: "it is for issuer " + rule.Issuer}
	}
	saysProtected := false
	later := ""
	for _, condition := range rule.Claims {
		saysProtected = saysProtected || condition.Claim == "ref_protected"
		if why := condition.unmet(c); why != "" {
			if slices.Contains(identity, condition.Claim) {
				return ruling{stranger: true, why: why}
			}
			later = orElse(later, why)
		}
	}
	if r.changes() && !saysProtected && !slices.Contains(c.texts("ref_protected"), "true") {
		later = orElse(later, `ref_protected is not "true", and a change must come from a protected branch or tag unless the rule itself names ref_protected`)
	}
	return ruling{why: orElse(later, rule.refuses(r))}
}

// unmet says why a token's claim is not what the rule wants; "" = it is.
func (condition Condition) unmet(c *Claims) string {
	got := c.texts(condition.Claim)
	switch {
	case len(got) == 0:
		if _, there := c.values[condition.Claim]; there {
			return condition.Claim + " is no text in the id_token"
		}
		return condition.Claim + " is not in the id_token"
	case !anyMatches(condition.Any, got...):
		return fmt.Sprintf("%s is %s, not %s", condition.Claim, shown(strings.Join(got, ", ")), patterns(condition.Any))
	}
	return ""
}

// refuses says what of the request goes beyond the rule; "" = nothing.
func (rule *Rule) refuses(r Request) string {
	override := slices.Contains(rule.Allow, ActionOverride)
	switch {
	case !slices.Contains(rule.Fleets, r.Fleet):
		return "it is not for fleet " + shown(r.Fleet)
	case !rule.allows(r.Action):
		return fmt.Sprintf("it allows %s, not %s", words(rule.Allow), r.Action)
	case len(r.Overrides) > 0 && !override:
		return "it does not allow override, which is needed for " + strings.Join(r.Overrides, ", and for ")
	case rule.MaxCap > 0 && r.Cap > rule.MaxCap:
		return fmt.Sprintf("the cap of %s is above its max_cap of %s", r.Cap, rule.MaxCap)
	case rule.MaxCap > 0 && r.WaitsUntil > rule.MaxCap && !override:
		return fmt.Sprintf("it does not allow override, which is needed for on_overrun wait: that may last %s, beyond its max_cap of %s", r.WaitsUntil, rule.MaxCap)
	}
	for _, vm := range r.VMs {
		if len(rule.VMs) > 0 && !anyMatches(rule.VMs, vm) {
			return fmt.Sprintf("VM %s is not among its vms, %s", shown(vm), patterns(rule.VMs))
		}
	}
	return ""
}

// allows says whether the action is on the list. Who may do anything may look;
// who may ask for operations may have them planned.
func (rule *Rule) allows(a Action) bool {
	switch {
	case slices.Contains(rule.Allow, a):
		return true
	case a == ActionRead:
		return len(rule.Allow) > 0
	case a == ActionPlan:
		return slices.ContainsFunc(rule.Allow, func(b Action) bool { return slices.Contains(fleet.Kinds(), fleet.Kind(b)) })
	}
	return false
}

func words(list []Action) string {
	texts := make([]string, len(list))
	for i, a := range list {
		texts[i] = string(a)
	}
	return strings.Join(texts, ", ")
}

func orElse(first, second string) string {
	if first != "" {
		return first
	}
	return second
}
