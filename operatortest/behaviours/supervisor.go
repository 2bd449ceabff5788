package behaviours

import (
	"context"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/traffic"
)

// supervisor runs operators one after another: when one is killed, the next is started.
type supervisor struct {
	*trial.Trial
	// crashPoints are for the operators that have not started yet.
	crashPoints []*crashPoint
	current     *trial.Instance
	restore     func()
	// synced means that waitSynced has waited for the current operator, or need not wait for it.
	synced bool
}

// start runs the next operator, with the next crash point if there is one.
func (s *supervisor) start() {
	tap := traffic.New()
	s.restore, s.synced = func() {}, false
	if len(s.crashPoints) > 0 {
		s.crashPoints[0].attach(s, tap)
		s.crashPoints = s.crashPoints[1:]
	}
	s.current = s.StartOn(tap, operatortest.RunOptions{})
}

// restartKilled starts another operator if the current one was killed. If the current one ended without being killed,
// restartKilled returns an error.
func (s *supervisor) restartKilled() error {
	err := s.Ended()
	if !s.current.Tap.Killed() {
		return err
	}
	if err := s.current.Kill(); err != nil {
		return err
	}
	s.restore()
	s.start()
	return nil
}

// waitSynced gives the current operator time to fill its caches and to act on what it finds.
func (s *supervisor) waitSynced(ctx context.Context) error {
	if err := s.restartKilled(); err != nil || s.synced {
		return err
	}
	s.synced = true
	return s.WaitSynced(ctx, s.current)
}
