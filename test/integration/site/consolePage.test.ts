/** How what a command prints is compared with what a page shows, and the shell that the commands of pages run in. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { ConsoleShell, commandsOf, isAsShown, runPage } from '../../support/consolePage.ts'

const cases = [
  { name: 'the same text', shown: 'deployment.apps/web created', printed: 'deployment.apps/web created\n', want: true },
  { name: 'another word', shown: 'deployment.apps/web created', printed: 'deployment.apps/web configured', want: false },
  { name: 'generated names', shown: 'pod/shop-9d9bc778f-9vfgb', printed: 'pod/shop-7c5ddbdf54-x2k8q', want: true },
  { name: 'a name that is not generated', shown: 'pod/shop-9d9bc778f-9vfgb', printed: 'pod/shop-frontend', want: false },
  { name: 'ages and widths of columns', shown: 'web   2/2     1m5s', printed: 'web 2/2  7s', want: true },
  {
    name: 'times and uids',
    shown: '2026-11-29T14:05:34Z 0a1b2c3d-0000-4000-8000-0123456789ab',
    printed: '2027-01-01T00:00:00.5Z ffffffff-1111-4111-9111-ba9876543210',
    want: true,
  },
  { name: 'lines that the page leaves out', shown: 'first\n…\nlast', printed: 'first\na\nb\nlast', want: true },
  { name: 'lines that the page does not leave out', shown: 'first\nlast', printed: 'first\na\nlast', want: false },
  { name: 'text within a line that the page leaves out', shown: '{"a":…}', printed: '{"a":{"b":"c"}}', want: true },
  { name: 'bars of another length', shown: 'TLS 318 ██████ x', printed: 'TLS 3     ██ x', want: true },
  { name: 'signs of patterns as themselves', shown: 'a.b (c)', printed: 'axb (c)', want: false },
]
for (const { name, shown, printed, want } of cases) {
  test(`X2 a page ${want ? 'allows' : 'refuses'} ${name}`, () => assert.equal(isAsShown(shown, printed), want))
}

test('X2 a block of a page is commands, each with what it prints; a backslash continues a command', () => {
  assert.deepEqual(commandsOf('$ a\nb\n$ c \\\n  d\n$ e\n'), [
    { text: 'a', printed: 'b' },
    { text: 'c \\\n  d', printed: '' },
    { text: 'e', printed: '' },
  ])
})

async function withDirectory(body: (directory: string) => Promise<void>): Promise<void> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-console-'))
  try {
    await body(directory)
  } finally {
    fs.rmSync(directory, { recursive: true })
  }
}

test('X2 variables of a page last from command to command, and errors are printed in place', () =>
  withDirectory(async (directory) => {
    const shell = new ConsoleShell(directory, process.env)
    assert.equal(await shell.run('name=skiff'), '')
    assert.equal(await shell.run('echo "one $name"; echo two >&2; false'), 'one skiff\ntwo')
    assert.equal(await shell.run('cat'), '')
    await shell.end()
  }))

test('X2 a page makes the files that it shows, and fails where a command prints something else', () =>
  withDirectory(async (directory) => {
    const page = path.join(directory, 'page.md')
    const write = (text: string) => fs.writeFileSync(page, `# A page\n\n\`\`\`console\n${text}\`\`\`\n`)
    write('$ cat a.txt\none\ntwo\n$ tail -n 1 a.txt\ntwo\n')
    await runPage(page, directory, process.env)
    write('$ echo three\nfour\n')
    await assert.rejects(runPage(page, directory, process.env), /\$ echo three/)
  }))
