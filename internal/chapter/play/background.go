package play

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/operator-workshop/internal/chapter"
)

const (
	// backgroundOutput is the maximum number of bytes of a background process's output that are kept. backgroundTail is the
	// maximum number of lines that are shown if the process ends on its own.
	backgroundOutput = 64 << 10
	backgroundTail   = 20
)

// background is a process that a block with background= started.
type background struct {
	name    string
	command *chapter.Command
	process *process
}

// startBackground starts the block's command and waits until its output contains the ready text.
func (p *playing) startBackground(ctx context.Context, block *chapter.Block) error {
	command := &block.Commands[0]
	output := newCapture(backgroundOutput, p.screen)
	output.awaited = block.Ready
	process, err := p.session.start(command.Text, output, false)
	if err != nil {
		return p.failure(command, err.Error())
	}
	b := &background{name: block.Background, command: command, process: process}
	p.backgrounds = append(p.backgrounds, b)
	err = p.awaitReady(ctx, b, block)
	// From now on, the screen doesn't show what this process prints.
	output.mute()
	p.screen.endOutput()
	return err
}

func (p *playing) awaitReady(ctx context.Context, b *background, block *chapter.Block) error {
	limit := p.limit(block)
	select {
	case <-b.process.output.ready:
		return nil
	case <-b.process.drained:
		return p.checkBackgrounds()
	case <-ctx.Done():
		return p.interrupted(ctx, b.command)
	case <-time.After(limit):
		lines, _ := b.process.output.lines()
		headline := fmt.Sprintf("background process %s has not printed %q after %s", b.name, block.Ready, limit)
		return p.failure(b.command, headline, section("output so far", lines, unmarked))
	}
}

// checkBackgrounds reports, once, every background process that has ended by itself.
func (p *playing) checkBackgrounds() error {
	var errs []error
	p.backgrounds = slices.DeleteFunc(p.backgrounds, func(b *background) bool {
		if !b.process.ended() {
			return false
		}
		lines, _ := b.process.output.lines()
		lines = lines[max(0, len(lines)-backgroundTail):]
		headline := fmt.Sprintf("background process %s ended by itself with exit status %d", b.name, b.process.status())
		errs = append(errs, p.failure(b.command, headline, section("its last output", lines, unmarked)))
		// Its children may still be running.
		b.process.stop(p.session.grace)
		return true
	})
	return errors.Join(errs...)
}

// stopBackground stops the background process with this name. If there is none, it does nothing: most blocks name no
// process to stop, and the block that starts one may have been skipped or not played.
func (p *playing) stopBackground(name string) {
	for i, b := range p.backgrounds {
		if b.name == name {
			b.process.stop(p.session.grace)
			p.backgrounds = slices.Delete(p.backgrounds, i, i+1)
			return
		}
	}
}
