package chapter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// play is one playing of a chapter.
type play struct {
	chapter        *Chapter
	session        *session
	screen         *screen
	enter          func(context.Context)
	echo           bool // the terminal shows the Enter key, which ends the line of a command
	cluster        string
	timeout        time.Duration
	cleanupTimeout time.Duration
	backgrounds    []*background
	done           map[*Block]bool // played to the end
	result         Result
}

func (p *play) steps(ctx context.Context) error {
	for i := range p.chapter.Steps {
		if err := p.step(ctx, &p.chapter.Steps[i]); err != nil {
			return err
		}
	}
	return p.checkBackgrounds()
}

func (p *play) step(ctx context.Context, step *Step) error {
	p.screen.heading(step)
	start := time.Now()
	commands, skipped := p.result.Commands, p.result.Skipped
	for i := range step.Blocks {
		block := &step.Blocks[i]
		if !block.PlayedOn(p.cluster) {
			p.skip(block)
			continue
		}
		if err := p.block(ctx, block); err != nil {
			p.screen.result("FAIL", step, p.note(commands, start))
			return err
		}
		p.done[block] = true
	}
	skipped = p.result.Skipped - skipped
	switch {
	case len(step.Blocks) == 0:
	case skipped == len(step.Blocks):
		p.screen.result("skip", step, "needs "+strings.Join(step.Blocks[0].Clusters, " or "))
	default:
		p.result.Steps++
		p.screen.result("ok", step, p.note(commands, start))
	}
	return nil
}

// note sums up a step that started after this number of commands and at this time.
func (p *play) note(commands int, start time.Time) string {
	return plural(p.result.Commands-commands, "command") + ", " + seconds(time.Since(start))
}

func (p *play) skip(block *Block) {
	needs := strings.Join(block.Clusters, " or ")
	p.result.Skipped++
	if !slices.Contains(p.result.Needs, needs) {
		p.result.Needs = append(p.result.Needs, needs)
	}
	p.screen.say(fmt.Sprintf("(skipped: %s, line %d, needs %s)", plural(len(block.Commands), "command"), block.Line, needs))
}

func (p *play) block(ctx context.Context, block *Block) error {
	if err := p.checkBackgrounds(); err != nil {
		return err
	}
	p.stopBackground(block.Stop)
	for i := range block.Commands {
		command := &block.Commands[i]
		if err := p.checkBackgrounds(); err != nil {
			return err
		}
		p.show(ctx, command)
		if ctx.Err() != nil {
			return p.interrupted(ctx, command)
		}
		p.result.Commands++
		if block.Background != "" {
			return p.startBackground(ctx, block)
		}
		if err := p.run(ctx, block, command); err != nil {
			return err
		}
	}
	return nil
}

// show shows a command and, if the player is asked to, waits for Enter.
func (p *play) show(ctx context.Context, command *Command) {
	p.screen.command(ctx, command.Text)
	p.enter(ctx)
	if !p.echo {
		p.screen.endCommand()
	}
}

// limit is the time that a command of the block gets.
func (p *play) limit(block *Block) time.Duration {
	if block.Timeout > 0 {
		return block.Timeout
	}
	return p.timeout
}

// run runs a command and compares what it does with what the chapter says.
func (p *play) run(ctx context.Context, block *Block, command *Command) error {
	limit := p.limit(block)
	output, status, err := p.session.run(ctx, command.Text, limit, p.screen.live())
	p.screen.endOutput()
	got := outputLines(output.String())
	switch {
	case errors.Is(err, errTimeLimit):
		err = p.failure(command, fmt.Sprintf("not finished after %s; timeout=DURATION gives it longer", limit), section("output so far", got))
	case ctx.Err() != nil:
		return p.interrupted(ctx, command)
	case err != nil:
		return p.failure(command, err.Error())
	case command.Exit == AnyError && status == 0:
		err = p.failure(command, "exit status 0, want an error", section("output", got))
	case command.Exit != AnyError && status != command.Exit:
		err = p.failure(command, fmt.Sprintf("exit status %d, want %d", status, command.Exit), section("output", got))
	case output.overflowed():
		err = p.failure(command, fmt.Sprintf("more than %d bytes of output", outputLimit))
	default:
		err = p.compare(command, got)
	}
	if err == nil {
		return nil
	}
	// What a command needs may have died under it: then that is what to look at.
	return errors.Join(err, p.checkBackgrounds())
}

// compare compares the lines of a command's output with the chapter's.
func (p *play) compare(command *Command, got []string) error {
	wantIndex, gotIndex, ok := matchOutput(command.Want, got)
	if ok {
		return nil
	}
	return p.failure(command, "the output differs, first in the lines marked with >",
		markedSection("want", command.Want, wantIndex), markedSection("got", got, gotIndex))
}

// cleanUp runs the cleanup blocks that were not played to their end, also when ctx has ended. Their output is not
// compared: what they remove may never have been there. Background processes still run, as finalizers may need them.
func (p *play) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.cleanupTimeout)
	defer cancel()
	var errs []error
	for i := range p.chapter.Steps {
		blocks := p.chapter.Steps[i].Blocks
		for j := range blocks {
			if block := &blocks[j]; block.Cleanup && !p.done[block] && block.PlayedOn(p.cluster) {
				errs = append(errs, p.cleanUpBlock(ctx, block))
			}
		}
	}
	return errors.Join(errs...)
}

func (p *play) cleanUpBlock(ctx context.Context, block *Block) error {
	p.stopBackground(block.Stop)
	var errs []error
	for i := range block.Commands {
		command := &block.Commands[i]
		p.screen.say("cleaning up: " + command.Text)
		_, status, err := p.session.run(ctx, command.Text, p.limit(block), p.screen.live())
		p.screen.endOutput()
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s:%d: cleanup was not finished: %w", p.chapter.Path, command.Line, err))
		case status != 0:
			errs = append(errs, fmt.Errorf("%s:%d: cleanup ended with exit status %d", p.chapter.Path, command.Line, status))
		}
	}
	return errors.Join(errs...)
}

// end ends everything that still runs.
func (p *play) end() error {
	for len(p.backgrounds) > 0 {
		p.stopBackground(p.backgrounds[len(p.backgrounds)-1].name)
	}
	return p.session.close()
}
