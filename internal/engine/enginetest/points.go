package enginetest

// Crash is what a point panics with: the process is dead from here on.
type Crash struct{ Point string }

// Points are the instants at which the engine can be made to die: before and
// after each effect on the world, and before and after each commit.
type Points struct {
	Passed []string
	Die    int               // 1 = at the first point; 0 = never
	At     func(name string) // what others do at a point; may be nil
}

// Pass is called at each point.
func (p *Points) Pass(name string) {
	p.Passed = append(p.Passed, name)
	if p.At != nil {
		p.At(name)
	}
	if p.Die > 0 && len(p.Passed) == p.Die {
		panic(Crash{Point: name})
	}
}

// Survive runs f and says whether it lived.
func Survive(f func()) (died string) {
	defer func() {
		if r := recover(); r != nil {
			crash, ok := r.(Crash)
			if !ok {
				panic(r)
			}
			died = crash.Point
		}
	}()
	f()
	return ""
}
