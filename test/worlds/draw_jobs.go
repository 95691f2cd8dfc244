package worlds

import (
	"math/rand/v2"
	"time"
)

// meddling is what happens to single jobs, and how often it is drawn.
var meddling = []string{
	"kill", "kill", "kill", "cancel job", "retry job", "cancel pipeline", "lose posts", "late post",
	"gitlab down", "gitlab stale", "gitlab 429", "start unit", "undrain", "pause", "no right",
}

// moments are those at which it is worst.
var moments = []string{
	"job:request", "job:answer", "cancel:request", "cancel:effect", "cancel:answer", "retry:request", "retry:effect", "retry:answer",
}

// drawJobs adds what concerns lost jobs. It has dice of its own, so that the
// rest of a seed's world is what it was.
func drawJobs(seed uint64, n int, p *Plan) {
	d := drawing{rand.New(rand.NewPCG(seed, 0x0bfa11))} //nolint:gosec // a story, no secret
	switch d.IntN(8) {
	case 0:
	case 1:
		p.Fleet.Write = Reporter
	case 2, 3:
		p.Fleet.Write = Developer
	default:
		p.Fleet.Write = Maintainer
	}
	p.Fleet.NoRecovery, p.Fleet.CutJobs, p.GitLab.Abrupt = d.one(12), d.one(4), d.one(4)
	for range d.IntN(3) {
		p.Acts = append(p.Acts, Act{Do: "job at stop", VM: d.IntN(n), Point: "stop:request", Nth: 1 + min(d.IntN(3), d.IntN(3))})
	}
	for range min(d.IntN(4), d.IntN(4)) {
		a := Act{Do: meddling[d.IntN(len(meddling))], VM: d.IntN(n), Point: moments[d.IntN(len(moments))], Nth: 1 + min(d.IntN(4), d.IntN(4))}
		switch a.Do {
		case "no right":
			p.Fleet.Write = Reporter
			continue
		case "lose posts":
			a.Times, a.At, a.Point, a.Nth = 1+d.IntN(2), time.Second, "", 0
		case "late post":
			a.For, a.At, a.Point, a.Nth = d.pick(3, 8, 15, 20)*time.Second, time.Second, "", 0
		case "kill", "pause", "gitlab down", "gitlab stale", "gitlab 429":
			a.For = d.pick(1, 5, 30, 120)*time.Second + time.Duration(d.IntN(1000))*time.Millisecond
		}
		p.Acts = append(p.Acts, a)
	}
}
