/*
Package chapter reads the chapters of the workshop: Markdown files with console fences that are played against a cluster
(package play), and with code fences that are filled from the source they show (package snippet).

This page is the reference for authors. A chapter is checked strictly: what can't be understood is an error with file and
line, and all errors of a file are reported at once.

# Headings

Headings of level 1 to 3 (#, ##, ###) are shown while playing; the console fences up to the next one are its step. Its
number is what --from=1.3 names:

	## 1.3 Columns

# Console fences

	```console
	$ kubectl get flightticket
	NAME    FROM   TO    AGE
	first   ICN    HND   [..]s
	$ kubectl get flightticket nobody
	Error from server (NotFound): [..]
	? 1
	```

"$ " starts a command. It ends where a POSIX shell would run it: \ at the end of a line, an open quote, a heredoc, or an
if without its fi continue it on the next line. What a POSIX shell can't read is an error. A leading "> " prompt is
removed from such a line (so a redirection there is written ">file", without a space), but not in a heredoc. Only a
heredoc may hold a blank line, or one that starts with "$ ".

The lines up to the next command are the expected output:

  - [..] matches any text within a line, also none;
  - a line ... matches any number of lines, also none;
  - everything else must be printed literally, apart from white space at the end of a line;
  - without any line, the command must print nothing: write ... when its output does not matter.

Standard output and standard error are one stream. Colours are removed from the real output before it is compared, and
blank lines at its end. Some lines can't be written literally, because they mean something here: blank lines, ..., and
those starting with "$ " or "? ". Write [..] for them, or for their beginning.

"? N" behind the output expects exit status N, 0 to 255. Without it, the status must be 0.

# Words behind console

	timeout=DURATION      each command gets so long, such as 30s or 5m, instead of 2 minutes
	expect=error          each command must fail; "? N" says with which status
	cluster=NAME[,NAME]   played on these clusters only (embedded, kind, current), skipped and counted on others
	cleanup               also run, without comparing, when the chapter failed or was interrupted before its end
	makes="KIND/NAME …"   with cleanup: what the chapter makes outside of its own namespaces, and these namespaces, as
	                      kubectl writes them; * is any text. Where one exists before, the chapter isn't played,
	                      because its cleanup would delete it
	background=NAME ready="TEXT"
	                      exactly one command, without expected output, that keeps running; the chapter goes on
	                      when it has printed TEXT, and fails when it has not within the time limit
	own="COMMAND"         with a learner's own copy of a stage, this command is run instead, without comparing its output,
	                      in the section that the learner has solved last
	stop=NAME             stop this background process first; the fence may have no command

A background process that ends before it is stopped fails the chapter, before the next command or at the end. To stop
it, the player sends SIGINT, as Ctrl-C does, SIGTERM after 10 seconds, and SIGKILL after 5 more, to it and to every
process that it started. It stops what still runs at the end. When a chapter fails, its cleanup fences run before that,
since deleting may need the operator. They run in the working directory of that moment, so they must not depend on a cd
in a later step.

# Hidden blocks

	<!-- console timeout=1m
	$ until kubectl get lease foo; do sleep 1; done
	...
	-->

A comment that starts with the word console is played like a fence with the same words, but readers of the page don't see
it. It is for what only the player needs, such as waiting where a person would look. It ends with --> on a line of its own.

# The shell

Commands behave as if typed into one POSIX shell: the working directory, variables (exported or not) and $? carry over,
within a fence and between fences. Functions, aliases, traps, shell options, jobs and $! do not, because each command is an
sh of its own, in a process group of its own, which can be ended whole. It is sh, not bash: no arrays, no [[. Standard
input is empty. A child that a command leaves running (&) is ended at the end of the chapter; what it prints after its
command has ended may not be seen. One that leaves its process group, as daemons do, is not found: use background=.

# Fences filled from source

	```go file=01-crd-only/api/types.go symbol=FlightTicket
	```go file=02-clientgo-foo/sync.go symbol=controller.sync step=2.9c
	```yaml file=01-crd-only/crd.yaml key=spec.versions[0].schema
	```diff file=02-clientgo-foo/sync.go symbol=controller.sync step=2.9c
	```makefile file=Makefile

`make generate` writes the body; `make verify` fails when it is stale. The file is named from the root of the repository.
The symbol is a function, a type, a constant, a variable, or a method written Type.Method, and comes with its doc comment.
The key is cut with the comments directly above it; a part with dots in it is written ["a.b/c"]. Without either, it is the
whole file. With a step of the exercises, it is as it is after this step, otherwise as it is in the end. A diff shows
what the step adds (+) and removes (-), with the lines around it.

# Other fences

A fence is what CommonMark says. Its indentation, as in a list, is removed. It can't start on the line of a list marker or
in a quotation. What looks like a fence and is none, by its indentation or within HTML, is an error. A fence for sh, bash
or another shell is an error, and so is one without a language that has a "$ " line: readers would take it for something
that is checked. Use console, or text. Fences in other languages are left alone. So are HTML comments that aren't hidden
console blocks, with everything in them.
*/
package chapter
