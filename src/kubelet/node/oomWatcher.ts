/**
 * Records events for processes that the kernel killed because the whole node was out of memory (L3). Upstream: kubelet/oom, cadvisor's oomparser (v1.36).
 * The runtime reports kills for limits of containers.
 */
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { messageOf } from '#base/messageOf'
import type { KubeletContext } from '../core/context.ts'

export interface OomVictim {
  readonly pid: number
  readonly name: string
}

const constraint = /oom-kill:constraint=(\w+),.*?,task=([^,]*),pid=(\d+)/
const killed = /Out of memory: (?:Killed|Kill) process (\d+) \((.*?)\)/

/**
 * The victims in kernel messages, oldest first. Kernels since 5.0 log the cause in a separate line, older ones in the line of the kill:
 * "Memory cgroup out of memory" is a container's limit.
 */
export function oomVictims(messages: string): OomVictim[] {
  const lines = messages.split('\n')
  const hasConstraint = lines.some((line) => constraint.test(line))
  return lines.flatMap((line): OomVictim[] => {
    if (hasConstraint) {
      const [, why, name, pid] = constraint.exec(line) ?? []
      return why === 'CONSTRAINT_NONE' && name !== undefined ? [{ pid: Number(pid), name }] : []
    }
    const [, pid, name] = killed.exec(line) ?? []
    return pid !== undefined && name !== undefined ? [{ pid: Number(pid), name }] : []
  })
}

const periodMs = 10_000
const chunkBytes = 8192
/** What one round reads at most: the kernel's buffer is not larger by default. */
const maxMessages = 10_000

/** Polls until aborted, without a blocked thread. A node that may not read the kernel's messages logs that once. */
export async function watchOom(context: KubeletContext, signal: AbortSignal, file = '/dev/kmsg'): Promise<void> {
  const { clock, config, log, recorder } = context
  const source = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    log.warn('Cannot record events for processes that the kernel kills when memory is short', { error: messageOf(error) })
  })
  if (!source) return
  try {
    // Messages from before the start of the kubelet are skipped.
    await readAll(source)
    while (!signal.aborted) {
      await clock.sleep(periodMs, signal).catch(() => {})
      if (signal.aborted) return
      for (const { name, pid } of oomVictims(await readAll(source))) {
        const message = `System OOM encountered, victim process: ${name}, pid: ${pid}`
        recorder.event({ kind: 'Node', name: config.nodeName, uid: config.nodeName }, 'Warning', 'SystemOOM', message)
      }
    }
  } finally {
    await source.close()
  }
}

/** Every read is one message; EAGAIN: there are no more. EPIPE: some were overwritten before they were read. */
async function readAll(source: FileHandle): Promise<string> {
  const buffer = Buffer.alloc(chunkBytes)
  const messages: string[] = []
  for (let count = 0; count < maxMessages; count++) {
    try {
      const { bytesRead } = await source.read(buffer, 0, chunkBytes, null)
      if (bytesRead === 0) break
      messages.push(buffer.toString('utf8', 0, bytesRead))
    } catch (error) {
      if ((error as { code?: string }).code !== 'EPIPE') break
    }
  }
  return messages.join('')
}
