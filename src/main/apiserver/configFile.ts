/**
 * Reads and follows configuration files (L5): looks once a minute and whenever the folder reports a change, so that files which are swapped through
 * links, as mounted secrets are, are noticed too. Upstream: apiserver/pkg/util/filesystem WatchUntil.
 */
import { type FSWatcher, watch } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { ConfigFile } from '#apiserver/core/configFile'
import type { Clock } from '#base/clock'

const lookEveryMs = 60_000
/** Editors write in several steps. */
const settleMs = 100

export function createConfigFile(file: string, clock: Clock): ConfigFile {
  let last: string | undefined
  return {
    path: file,
    async read() {
      try {
        last = await fs.readFile(file, 'utf8')
        return last
      } catch (error) {
        throw new Error(`${file} cannot be read: ${(error as Error).message}`, { cause: error })
      }
    },
    follow(changed, signal) {
      if (signal.aborted) return
      const look = async () => {
        const text = await fs.readFile(file, 'utf8').catch(() => undefined)
        if (signal.aborted || text === undefined || text === last) return
        last = text
        changed(text)
      }
      let pending = false
      const lookSoon = async () => {
        if (pending) return
        pending = true
        await clock.sleep(settleMs, signal).catch(() => {})
        pending = false
        await look()
      }
      const watcher = watchFolder(path.dirname(file), () => void lookSoon())
      signal.addEventListener('abort', () => watcher?.close(), { once: true })
      void lookRegularly(look, clock, signal)
    },
  }
}

async function lookRegularly(look: () => Promise<void>, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(lookEveryMs, signal).catch(() => {})
    if (!signal.aborted) await look()
  }
}

/** A folder that cannot be watched (none left to the user, an odd file system) is looked at by time alone. */
function watchFolder(folder: string, onEvent: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder, { persistent: false }, onEvent)
    watcher.on('error', () => watcher.close())
    return watcher
  } catch {
    return undefined
  }
}
