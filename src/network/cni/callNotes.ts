/**
 * Reads the notes of recorded CNI plugins (L3), and removes them: a file with the arguments, written before the plugin ran, and one with its answer, written after.
 * The times of the files are those of the call. recorder.ts writes them.
 */
import { watch } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { NodeCall } from '#api/debug/nodeCalls'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import { messageOf } from '#base/messageOf'
import { createWakeUp } from '#base/wakeUp'
import { isMissing, listIfExists, makePrivateDirectory } from '#host/files'

export interface CniCall extends NodeCall {
  readonly podUid?: string | undefined
}

export interface CallNotesDeps {
  readonly clock: Clock
  readonly log: Logger
  /** Gets each call once. */
  readonly take: (call: CniCall) => void
}

/** A plugin that has not answered by then was killed. */
const mostMs = 5 * 60_000
/** A configuration with the result of the plugin before has two kilobytes. */
const mostBytes = 256 * 1024

/** Takes the notes as they come. */
export function createCallNotes(deps: CallNotesDeps, directory: string): Component {
  return {
    name: 'cni call notes',
    run: async (signal) => {
      await makePrivateDirectory(directory)
      const changes = createWakeUp()
      // Those of an earlier agent are there already.
      changes.ring()
      const watcher = watch(directory, changes.ring)
      watcher.on('error', (error) => deps.log.error(error, 'Failed to watch the notes of CNI calls'))
      try {
        for (await changes.wait(signal); !signal.aborted; await changes.wait(signal)) await takeNotes(deps, directory)
      } finally {
        watcher.close()
      }
    },
  }
}

/** Takes the notes that are complete, and those that will never be. */
export async function takeNotes({ clock, log, take }: CallNotesDeps, directory: string): Promise<void> {
  const names = new Set(await listIfExists(directory))
  for (const name of names) {
    const begun = path.join(directory, name)
    // A full disk kept the script from writing the arguments.
    if (name.endsWith('.answer') && !names.has(name.replace(/answer$/, 'call'))) await fs.rm(begun, { force: true })
    if (!name.endsWith('.call')) continue
    const ended = begun.replace(/call$/, 'answer')
    try {
      const [call, answer] = await Promise.all([readNote(begun), names.has(path.basename(ended)) ? readNote(ended) : undefined])
      const isComplete = answer?.text.endsWith('\nend\n')
      if (!call || (!isComplete && clock.now() - call.atMs < mostMs)) continue
      await Promise.all([begun, ended].map((file) => fs.rm(file, { force: true })))
      take(callOf(call, isComplete ? answer : undefined))
    } catch (error) {
      log.warn('A note of a CNI call cannot be read', { note: name, error: messageOf(error) })
    }
  }
}

interface Note {
  readonly text: string
  readonly atMs: number
}

/** Undefined: there is no such note any more. The rest of a longer one is not read. */
async function readNote(file: string): Promise<Note | undefined> {
  const opened = await fs.open(file).catch((error: unknown) => {
    if (!isMissing(error)) throw error
  })
  if (!opened) return undefined
  try {
    const { mtimeMs, size } = await opened.stat()
    const bytes = Buffer.alloc(Math.min(size, mostBytes))
    const { bytesRead } = await opened.read(bytes, 0, bytes.length, 0)
    return { text: bytes.toString('utf8', 0, bytesRead), atMs: mtimeMs }
  } finally {
    await opened.close()
  }
}

/** The call of a note. @param answer absent: there was none */
export function callOf(begun: Note, answer: Note | undefined): CniCall {
  const [method = '', containerId, netns, ifname, args = '', ...config] = begun.text.split('\n')
  const named = new Map(args.split(';').map((pair) => pair.split('=', 2) as [string, string | undefined]))
  const [namespace, name] = ['K8S_POD_NAMESPACE', 'K8S_POD_NAME'].map((key) => named.get(key))
  const request = JSON.stringify({ containerId, netns, ifname, args, config: parsed(config.join('').trim()) })
  const known = {
    ...({ api: 'CNI', method, time: new Date(begun.atMs).toISOString(), request } as const),
    ...(namespace && name ? { pod: `${namespace}/${name}` } : {}),
    ...(named.get('K8S_POD_UID') ? { podUid: named.get('K8S_POD_UID') } : {}),
  }
  if (!answer) return known
  const [code, ...lines] = answer.text.split('\n')
  const text = lines.slice(0, -2).join('\n')
  const value = parsed(text)
  const result = typeof value === 'string' ? text : JSON.stringify(value)
  return {
    ...known,
    milliseconds: Math.max(0, Math.round(answer.atMs - begun.atMs)),
    code: code === '0' ? 'OK' : 'FAILED',
    answer: result === '' && code !== '0' ? `exit status ${code}` : result,
  }
}

/** Plugins indent what they write. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
