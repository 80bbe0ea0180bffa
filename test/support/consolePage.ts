/**
 * Runs the `console` blocks of a page, command by command, in one shell, and compares what they print with what the page says. Numbers, times, generated
 * names and widths of columns may differ; a line `…` of the page stands for any lines, and `…` within a line for any text. `$ cat FILE` creates a file that
 * is not there from the lines below it. SKIFF_WRITE_PAGES=1 writes into the page what was printed.
 */
import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'

interface Command {
  readonly text: string
  readonly printed: string
}

const consoleBlock = /^```console\n([\s\S]*?)^```/gm

/** The commands of a block, each with the lines below it. A backslash at the end of a line continues the command in the next one. */
export function commandsOf(block: string): Command[] {
  return block
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const [, text = '', printed = ''] = /^((?:.*\\\n)*.*)\n?([\s\S]*)$/.exec(part) ?? []
      return { text, printed: printed.trimEnd() }
    })
}

/** A name's part that Kubernetes generates has these characters only. */
const generatedName = '[bcdfghj-np-tv-xz2456789]'

const variable: readonly (readonly [RegExp, string])[] = [
  [/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UID'],
  [/\b[0-9a-f]{64}\b/g, 'HASH'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, 'TIME'],
  [new RegExp(`-(?:${generatedName}{6,10}(?:-${generatedName}{5})?|${generatedName}{5})\\b`, 'g'), '-NAME'],
  [/█+/g, '█'],
  [/-{3,}/g, '---'],
  [/\d+([.,:]\d+)*/g, 'N'],
  [/\bN(ms|[smhd])(N(ms|[smhd]))*\b/g, 'N'],
  [/[ \t]+/g, ' '],
  [/ $/gm, ''],
]

/** What may differ from run to run becomes the same. */
export function withoutVariables(text: string): string {
  return variable.reduce((left, [pattern, put]) => left.replace(pattern, put), text.trimEnd())
}

export function isAsShown(shown: string, printed: string): boolean {
  const escaped = withoutVariables(shown).replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  if (escaped === '…') return true
  const pattern = escaped
    .replace(/^…\n/gm, '(?:.*\\n)*?')
    .replace(/(^|\n)…$/, '(?:$1.*)*')
    .replaceAll('…', '.*?')
  return new RegExp(`^${pattern}$`).test(withoutVariables(printed))
}

/** One bash, whose variables last from command to command. */
export class ConsoleShell {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #mark = `end-of-command-${process.pid}`
  #text = ''

  constructor(directory: string, env: NodeJS.ProcessEnv) {
    this.#child = spawn('bash', ['--noprofile', '--norc'], { cwd: directory, env })
    this.#child.stdout.on('data', (chunk) => {
      this.#text += chunk
    })
    this.#child.stdin.write('exec 2>&1\n')
  }

  /** What the command prints, on standard output and standard error. */
  async run(command: string, timeoutMs = 120_000): Promise<string> {
    this.#text = ''
    this.#child.stdin.write(`{ ${command}\n} </dev/null\nprintf '\\n%s\\n' ${this.#mark}\n`)
    const deadline = AbortSignal.timeout(timeoutMs)
    while (!this.#text.includes(this.#mark)) {
      await once(this.#child.stdout, 'data', { signal: deadline }).catch(() => assert.fail(`${command} did not end within ${timeoutMs} ms:\n${this.#text}`))
    }
    return this.#text.slice(0, this.#text.indexOf(this.#mark)).replace(/\n{1,2}$/, '')
  }

  async end(): Promise<void> {
    this.#child.stdin.end()
    if (this.#child.exitCode === null) await once(this.#child, 'exit')
  }
}

/** Commands that only read: what they show may still be on its way. */
const reads = /^(kubectl (get|--context \S+ get|--kubeconfig \S+ get)|skiff (why|net|history|diff|explain|calls|ls|nodes ls|at)|busybox wget)\b/
const readAgainForMs = 15_000

async function printedBy(shell: ConsoleShell, { text, printed }: Command): Promise<string> {
  const until = Date.now() + readAgainForMs
  for (;;) {
    const got = await shell.run(text)
    if (isAsShown(printed, got) || !reads.test(text) || Date.now() > until || isWriting) return got
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
}

const isWriting = process.env.SKIFF_WRITE_PAGES === '1'

/** Runs all commands of the page. @param file path of the page; @param directory where the commands run */
export async function runPage(file: string, directory: string, env: NodeJS.ProcessEnv): Promise<void> {
  const page = fs.readFileSync(file, 'utf8')
  const shell = new ConsoleShell(directory, env)
  const blocks = [...page.matchAll(consoleBlock)].map(([, block = '']) => block)
  assert.ok(blocks.length > 0, `${file} has no console block`)
  const written: string[] = []
  try {
    for (const block of blocks) {
      const commands = commandsOf(block)
      const parts: string[] = []
      for (const command of commands) parts.push(await checked(shell, command, directory))
      written.push(parts.join(''))
    }
  } finally {
    await shell.end()
  }
  if (!isWriting) return
  let at = 0
  fs.writeFileSync(
    file,
    page.replace(consoleBlock, () => `\`\`\`console\n${written[at++]}\`\`\``),
  )
}

/** The command as the page shows it. */
async function checked(shell: ConsoleShell, command: Command, directory: string): Promise<string> {
  const [, file] = /^cat (\S+)$/.exec(command.text) ?? []
  if (file !== undefined && !fs.existsSync(path.join(directory, file))) fs.writeFileSync(path.join(directory, file), `${command.printed}\n`)
  const got = await printedBy(shell, command)
  const isRight = isAsShown(command.printed, got)
  if (!isRight && !isWriting) assert.equal(withoutVariables(got), withoutVariables(command.printed), `$ ${command.text}`)
  const shown = isRight ? command.printed : got
  return `$ ${command.text}\n${shown === '' ? '' : `${shown}\n`}`
}
