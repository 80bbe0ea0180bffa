/**
 * Keeps the logs of a local cluster small (L5). They are the standard error of processes, which hold them open for appending: so a log that has grown
 * is copied to a file such as `server-2026-01-02T03-04-05.678.log` in the same folder, and emptied in place. Upstream leaves this to logrotate's copytruncate.
 */
import fs from 'node:fs'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import { backupName, cleanUp } from '../apiserver/rotatingFile.ts'

export interface LogRotationOptions {
  readonly maxBytes: number
  readonly maxBackups: number
}

const lookEveryMs = 30_000
const mebibyte = 1024 * 1024
const chunkBytes = mebibyte
const ownerOnly = 0o600

/** @param files looked at twice a minute; those that are not there are left out */
export function logRotation(files: readonly string[], { clock, log }: { readonly clock: Clock; readonly log: Logger }, options: LogRotationOptions): Component {
  return {
    name: 'log rotation',
    async run(signal) {
      while (!signal.aborted) {
        for (const file of files) {
          await rotateIfLarge(file, options, clock).catch((error: unknown) => log.error(error, 'A log could not be moved aside', { file }))
        }
        await clock.sleep(lookEveryMs, signal).catch(() => {})
      }
    },
  }
}

async function rotateIfLarge(file: string, { maxBytes, maxBackups }: LogRotationOptions, clock: Clock): Promise<void> {
  if ((fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0) <= maxBytes) return
  copyAndEmpty(file, backupName(file, clock.now()))
  await cleanUp(file, { maxAgeDays: 0, maxBackups, compress: false }, clock)
}

/** Without a pause: what this process writes cannot come between the end of the copy and the cut, and what others write hardly. */
function copyAndEmpty(file: string, backup: string): void {
  const from = fs.openSync(file, 'r+')
  try {
    const to = fs.openSync(backup, 'w', ownerOnly)
    try {
      const chunk = Buffer.allocUnsafe(chunkBytes)
      for (let read = fs.readSync(from, chunk); read > 0; read = fs.readSync(from, chunk)) fs.writeSync(to, chunk, 0, read)
      fs.ftruncateSync(from, 0)
    } finally {
      fs.closeSync(to)
    }
  } finally {
    fs.closeSync(from)
  }
}
