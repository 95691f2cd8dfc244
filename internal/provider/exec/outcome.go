package exec

import (
	"fmt"
	"syscall"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// codes are the exit codes with a meaning (docs/providers/exec.md).
var codes = map[int]fleet.Code{
	2: fleet.CodeInvalid,
	3: fleet.CodeNotFound,
	4: fleet.CodeConflict,
	5: fleet.CodeUnavailable,
	6: fleet.CodeQuota,
	7: fleet.CodeStockout,
	8: fleet.CodeImageMissing,
	9: fleet.CodeForbidden,
}

// outcome is how a command ended.
type outcome struct {
	exit     int    // 0 = done; as a shell counts: 128+n for signal n
	why      string // set when Sluice ended it, or it never ended properly
	vanished bool   // it left no result, and it was not Sluice that ended it
	stdout   []byte
	flooded  bool   // more than maxAnswer on stdout
	last     string // last line of the log
	log      string // the log's file; "" = none kept
}

func (o outcome) answer() (answer, error) {
	if o.flooded {
		return answer{}, errFlood
	}
	return parse(o.stdout)
}

func (o outcome) ok() bool { return o.exit == 0 && o.why == "" }

// code maps the exit to a failure's kind: what is not in the table may work
// later.
func (o outcome) code() fleet.Code {
	if code, ok := codes[o.exit]; ok && o.why == "" {
		return code
	}
	return fleet.CodeUnavailable
}

// text says how it ended, for people.
func (o outcome) text() string {
	switch {
	case o.why != "":
		return o.why
	case o.exit == 126:
		return "exit status 126: a command in it is not executable"
	case o.exit == 127:
		return "exit status 127: a command in it was not found"
	case o.exit > 128 && o.exit < 128+65:
		return fmt.Sprintf("it was ended by signal %d (%s)", o.exit-128, syscall.Signal(o.exit-128)) //nolint:gosec // range checked
	default:
		if code, ok := codes[o.exit]; ok {
			return fmt.Sprintf("exit status %d (%s)", o.exit, code)
		}
		return fmt.Sprintf("exit status %d", o.exit)
	}
}

// failure makes the error of a command that did not end well.
func (p *Provider) failure(req request, o outcome) *fleet.Error {
	message, hint := o.last, ""
	if a, err := o.answer(); err == nil && a.Error != "" {
		message, hint = a.Error, a.Hint
	}
	err := fleet.Errorf(o.code(), "%s: the %s command failed: %s", p.subject(req), req.Verb, o.text())
	if message != "" {
		err.Message += ": " + p.mask(message)
	}
	return p.withLog(err, p.mask(hint), o.log)
}

// misspoken makes the error of a command that ended with 0 and whose answer
// cannot be used.
func (p *Provider) misspoken(code fleet.Code, req request, cause error, o outcome) *fleet.Error {
	err := fleet.Errorf(code, "%s: the answer of the %s command cannot be used: %s", p.subject(req), req.Verb, p.mask(cause.Error()))
	return p.withLog(err, "see docs/providers/exec.md for what it must print", o.log)
}

func (p *Provider) withLog(err *fleet.Error, hint, log string) *fleet.Error {
	switch {
	case log == "" && hint == "":
		return err
	case log == "":
		return err.WithHint("%s", hint)
	case hint == "":
		return err.WithHint("its log is %s", log)
	default:
		return err.WithHint("%s; its log is %s", hint, log)
	}
}
