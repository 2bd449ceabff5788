package play

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/internal/chapter"
)

// playing is the state while a chapter is played.
type playing struct {
	player      *Player
	chapter     *chapter.Chapter
	session     *session
	screen      *screen
	input       *bufio.Reader // where Enter is read before each command; nil does not wait
	reached     bool          // whether the first step to show has begun
	number      string        // of the step being played
	cluster     string
	backgrounds []*background
	done        map[*chapter.Block]bool // played to the end
	counts      counts
}

type counts struct {
	steps    int // steps with at least one played block
	commands int
	differ   int      // commands whose output differed; only with Differs
	skipped  int      // blocks for other clusters
	needs    []string // the clusters that the skipped blocks need
}

func (c counts) String() string {
	text := plural(c.steps, "step") + ", " + plural(c.commands, "command")
	if c.differ > 0 {
		text += fmt.Sprintf(", %d with different output", c.differ)
	}
	if c.skipped > 0 {
		text += fmt.Sprintf(", %s skipped (need %s)", plural(c.skipped, "block"), strings.Join(c.needs, ", "))
	}
	return text
}

func (p *playing) steps(ctx context.Context) error {
	for i := range p.chapter.Steps {
		if before := p.player.Before; before != "" && p.chapter.Steps[i].Number() == before {
			break
		}
		if err := p.step(ctx, &p.chapter.Steps[i]); err != nil {
			return err
		}
	}
	return p.checkBackgrounds()
}

func (p *playing) step(ctx context.Context, step *chapter.Step) error {
	if !p.reached && step.Number() == p.player.From {
		p.reached, p.screen.quiet = true, p.player.Quiet
	}
	p.number = cmp.Or(step.Number(), p.number) // a heading without a number belongs to the step before it
	p.screen.heading(step)
	start := time.Now()
	before := p.counts
	// note summarizes the step.
	note := func() string {
		return plural(p.counts.commands-before.commands, "command") + ", " + seconds(time.Since(start))
	}
	for i := range step.Blocks {
		block := &step.Blocks[i]
		if !block.PlayedOn(p.cluster) {
			p.skip(block)
			continue
		}
		if err := p.block(ctx, block); err != nil {
			p.screen.result("FAIL", step, note())
			return err
		}
		p.done[block] = true
	}
	switch {
	case len(step.Blocks) == 0:
	case p.counts.skipped-before.skipped == len(step.Blocks):
		p.screen.result("skip", step, "needs "+strings.Join(step.Blocks[0].Clusters, " or "))
	default:
		p.counts.steps++
		p.screen.result("ok", step, note())
	}
	return nil
}

func (p *playing) skip(block *chapter.Block) {
	needs := strings.Join(block.Clusters, " or ")
	p.counts.skipped++
	if !slices.Contains(p.counts.needs, needs) {
		p.counts.needs = append(p.counts.needs, needs)
	}
	p.screen.say(fmt.Sprintf("(skipped: %s, line %d, needs %s)", plural(len(block.Commands), "command"), block.Line, needs))
}

func (p *playing) block(ctx context.Context, block *chapter.Block) error {
	if err := p.checkBackgrounds(); err != nil {
		return err
	}
	p.stopBackground(block.Stop)
	for i := range block.Commands {
		command := &block.Commands[i]
		if err := p.checkBackgrounds(); err != nil {
			return err
		}
		if err := p.show(ctx, command); err != nil {
			return err
		}
		p.counts.commands++
		if block.Background != "" {
			return p.startBackground(ctx, block)
		}
		if err := p.run(ctx, block, command); err != nil {
			return err
		}
	}
	return nil
}

// show shows a command. If the player has an input, and the first step to show has begun, it then waits for Enter.
func (p *playing) show(ctx context.Context, command *chapter.Command) error {
	p.screen.command(ctx, command.Text)
	var failed error
	waits := p.input != nil && p.reached
	if waits {
		failed = p.awaitEnter(ctx, command)
	}
	// A terminal echoes the Enter key, which ends the line.
	if !waits || !p.player.Typing || failed != nil {
		p.screen.endCommand()
	}
	if ctx.Err() != nil {
		return p.interrupted(ctx, command)
	}
	return failed
}

// awaitEnter waits until Enter is pressed or ctx ends. It fails when the input ends, so that nothing is played
// unattended.
func (p *playing) awaitEnter(ctx context.Context, command *chapter.Command) error {
	pressed := make(chan error, 1)
	go func() {
		_, err := p.input.ReadString('\n')
		pressed <- err
	}()
	select {
	case err := <-pressed:
		if errors.Is(err, io.EOF) {
			return p.failure(command, "stopped: expected Enter, but the input ended")
		}
		if err != nil {
			return p.failure(command, fmt.Sprintf("wait for Enter: %v", err))
		}
	case <-ctx.Done():
	}
	return nil
}

func (p *playing) limit(block *chapter.Block) time.Duration {
	return cmp.Or(block.Timeout, p.player.timeout, 2*time.Minute)
}

// run runs a command and compares its output and exit status with the chapter's.
func (p *playing) run(ctx context.Context, block *chapter.Block, command *chapter.Command) error {
	limit := p.limit(block)
	output, status, err := p.session.run(ctx, command.Text, limit, p.screen)
	p.screen.endOutput()
	got, complete := output.lines()
	wantIndex, gotIndex, matches := chapter.Match(command.Want, got)
	switch {
	case errors.Is(err, errTimeLimit):
		err = p.failure(command, fmt.Sprintf("not finished after %s; to give it more time, write timeout=DURATION after the word console in the page", limit), section("output so far", got, unmarked))
	case ctx.Err() != nil:
		return p.interrupted(ctx, command)
	case err != nil:
		return p.failure(command, err.Error())
	case command.Exit == chapter.AnyError && status == 0:
		err = p.failure(command, "exit status 0, want an error", section("output", got, unmarked))
	case command.Exit != chapter.AnyError && status != command.Exit:
		err = p.failure(command, fmt.Sprintf("exit status %d, want %d", status, command.Exit), section("output", got, unmarked))
	case !complete:
		err = p.failure(command, fmt.Sprintf("more than %d bytes of output", outputLimit))
	case !matches:
		difference := p.failure(command, "the output differs, first in the lines marked with >",
			section("want", command.Want, wantIndex), section("got", got, gotIndex))
		if p.player.Differs != nil {
			p.counts.differ++
			p.player.Differs(difference)
			return nil
		}
		err = difference
	default:
		return nil
	}
	// A background process that the command needs may have ended: report that too.
	return errors.Join(err, p.checkBackgrounds())
}

// cleanUp runs the cleanup blocks that were not played to their end, even if ctx has ended. Their output is not
// compared, because the objects that they remove may never have existed. A background process keeps running until a
// cleanup block stops it, because finalizers may need it.
func (p *playing) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(p.player.cleanupTimeout, time.Minute))
	defer cancel()
	var errs []error
	for i := range p.chapter.Steps {
		blocks := p.chapter.Steps[i].Blocks
		for j := range blocks {
			if block := &blocks[j]; block.Cleanup && !p.done[block] && block.PlayedOn(p.cluster) {
				errs = append(errs, p.cleanUpBlock(ctx, block)...)
			}
		}
	}
	return errors.Join(errs...)
}

func (p *playing) cleanUpBlock(ctx context.Context, block *chapter.Block) (errs []error) {
	p.stopBackground(block.Stop)
	for _, command := range block.Commands {
		p.screen.say("cleaning up: " + command.Text)
		_, status, err := p.session.run(ctx, command.Text, p.limit(block), p.screen)
		p.screen.endOutput()
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s:%d: cleanup was not finished: %w", p.chapter.Path, command.Line, err))
		case status != 0:
			errs = append(errs, fmt.Errorf("%s:%d: cleanup ended with exit status %d", p.chapter.Path, command.Line, status))
		}
	}
	return errs
}

// end stops all processes that are still running, and removes the session's files.
func (p *playing) end() error {
	for len(p.backgrounds) > 0 {
		p.stopBackground(p.backgrounds[len(p.backgrounds)-1].name)
	}
	return p.session.close()
}
