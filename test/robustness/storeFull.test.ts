/** The embedded store on a full disk: writes and new users are refused as noSpace, no acknowledged write is lost, reads, deletions and another start succeed. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { sourceProgram } from '../support/sourceProgram.ts'

const mayMount = process.getuid?.() === 0 && spawnSync('unshare', ['-m', 'true']).status === 0

/** The smaller one has no room for a journal; on the larger one the store leaves its journal out when little is left. */
for (const size of ['8m', '40m'])
  test(`a full disk of ${size} refuses writes, loses nothing, and lets the store open`, {
    skip: mayMount ? false : 'needs root, for a small disk of its own',
  }, () => {
    const folder = mkdtempSync(join(tmpdir(), 'skiff-full-'))
    try {
      const script = `mount -t tmpfs -o size=${size} tmpfs "$1" && store="$1/store.lmdb" && shift && exec "$@" "$store"`
      const writer = sourceProgram(join(import.meta.dirname, 'storeFullWriter.ts'))
      const { stdout, stderr } = spawnSync('unshare', ['-m', 'sh', '-c', script, 'sh', folder, process.execPath, ...writer], {
        encoding: 'utf8',
        timeout: 60_000,
      })
      assert.deepEqual(JSON.parse(stdout || JSON.stringify(stderr)), {
        refusal: 'noSpace',
        someWritten: true,
        revisionIsTheLastAcknowledged: true,
        allReadable: true,
        laterRefusals: ['noSpace'],
        newUser: 'noSpace',
        sameAfterOpening: true,
        afterACrash: { count: 5, refusal: 'noSpace' },
        withRoomAgain: 7,
      })
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
