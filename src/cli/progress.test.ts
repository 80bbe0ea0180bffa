import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { type CommandContext, progressFor } from './command.ts'

/** What a step writes to a terminal of that kind. */
async function written(env: Readonly<Record<string, string>>, columns?: number, title = 'API server'): Promise<string> {
  const parts: string[] = []
  const stderr = { write: (text: string) => void parts.push(text), isTTY: true, columns }
  await progressFor({ env, stderr, clock: new VirtualClock() } as unknown as CommandContext, false).step(title, async () => {})
  return parts.join('')
}

const plain = ' ✓ API server (0.0s)\n'
const cases: { name: string; env: Record<string, string>; want: string }[] = [
  { name: 'xterm', env: { TERM: 'xterm' }, want: ' \u001b[36m•\u001b[0m API server …\r\u001b[K \u001b[32m✓\u001b[0m API server \u001b[2m(0.0s)\u001b[0m\n' },
  { name: 'xterm with NO_COLOR', env: { TERM: 'xterm', NO_COLOR: '1' }, want: ` • API server …\r\u001b[K${plain}` },
  { name: 'dumb', env: { TERM: 'dumb' }, want: plain },
  { name: 'none', env: {}, want: plain },
]
for (const { name, env, want } of cases) {
  test(`progress on a terminal, TERM ${name}, has the escape codes that it understands`, async () => assert.equal(await written(env), want))
}

test('the line of a running step is cut to the width of the terminal, so that its end overwrites it', async () => {
  const title = 'Nodes: 2 with containerd, 0 simulated'
  const [running = '', ended] = (await written({ TERM: 'xterm', NO_COLOR: '1' }, 20, title)).split('\r')
  assert.equal(running, ' • Nodes: 2 with  …')
  assert.ok(running.length < 20)
  assert.ok(ended?.includes(title))
})

test('a step that reports its state shows it on a terminal, and elsewhere as a line each ten seconds', async () => {
  const shown = async (env: Readonly<Record<string, string>>) => {
    const parts: string[] = []
    const clock = new VirtualClock()
    const stderr = { write: (text: string) => void parts.push(text), isTTY: true }
    await progressFor({ env, stderr, clock } as unknown as CommandContext, false).step('Nodes ready', async (report) => {
      for (const count of [1, 2, 3]) {
        await clock.advance(6_000)
        report(`${count} of 3`)
      }
    })
    return parts.join('')
  }
  assert.equal(
    await shown({ TERM: 'xterm', NO_COLOR: '1' }),
    ` • Nodes ready …${[1, 2, 3].map((count) => `\r\u001b[K • Nodes ready: ${count} of 3 …`).join('')}\r\u001b[K ✓ Nodes ready (18.0s)\n`,
  )
  assert.equal(await shown({}), ' … Nodes ready: 2 of 3\n ✓ Nodes ready (18.0s)\n')
})
