import assert from 'node:assert/strict'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import { introduceDriver } from '#testing/csiDriver'
import type { PluginInfo } from '../../core/pluginHandler.ts'
import { watchPlugins } from './pluginWatcher.ts'

interface Watched {
  readonly directory: string
  /** What the handler was called for, in order. */
  readonly calls: string[]
  /** Looks at the directory again, whatever has changed. */
  rescan(): Promise<void>
}

/** @param register what the handler does before it has registered the plugin */
async function watching(register: (plugin: PluginInfo) => Promise<void>, run: (watched: Watched) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'plugins-'))
  const calls: string[] = []
  const clock = new VirtualClock()
  const stop = new AbortController()
  const handler = {
    type: 'CSIPlugin',
    register: async (plugin: PluginInfo) => {
      calls.push(`register ${plugin.name}`)
      await register(plugin)
    },
    deregister: ({ name }: PluginInfo) => void calls.push(`deregister ${name}`),
  }
  const done = watchPlugins({ clock, log: noLog, metrics: noMetrics, directory, path: (path) => path, handlers: [handler] }, stop.signal)
  try {
    await run({ directory, calls, rescan: () => clock.advance(10_000) })
  } finally {
    stop.abort()
    await done
    await rm(directory, { recursive: true })
  }
}

const introduce = (directory: string, name: string) => introduceDriver(directory, { driver: { name }, socket: '/socket' })

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise(setImmediate)
}

test('STO-11 a plugin that is slow to register does not keep others from it', async () => {
  let finish = () => {}
  const slow = new Promise<void>((resolve) => {
    finish = resolve
  })
  await watching(
    ({ name }) => (name === 'slow' ? slow : Promise.resolve()),
    async ({ directory, calls, rescan }) => {
      const first = await introduce(directory, 'slow')
      await until(() => calls.includes('register slow'))
      const second = await introduce(directory, 'z')
      await rescan()
      await until(() => second.answers.length > 0)
      assert.deepEqual([first.answers, second.answers], [[], ['']])
      finish()
      await until(() => first.answers.length > 0)
      await Promise.all([first.close(), second.close()])
    },
  )
})

test('STO-11 a plugin that changes the mode of its socket stays registered, and one whose socket is gone does not', async () => {
  await watching(
    async () => {},
    async ({ directory, calls, rescan }) => {
      const registration = await introduce(directory, 'one')
      await until(() => registration.answers.length > 0)
      await chmod(join(directory, 'one.sock'), 0o666)
      const other = await introduce(directory, 'two')
      await rescan()
      await until(() => other.answers.length > 0)
      assert.deepEqual(calls, ['register one', 'register two'])
      await registration.close()
      await rescan()
      await until(() => calls.length > 2)
      assert.deepEqual(calls.slice(2), ['deregister one'])
      await other.close()
    },
  )
})
