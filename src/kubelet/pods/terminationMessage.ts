/** What a container left as its last words (L3): its termination log, or the end of its output if it asked for that. Upstream: kuberuntime_container.go getTerminationMessage (v1.36). */
import { deadlineScope } from '#base/abortScope'
import type { KubeletContext } from '../core/context.ts'
import type { ContainerRecord, PodRuntimeStatus } from '../core/podRuntimeStatus.ts'
import { annotationKeys } from '../core/runtimeLabels.ts'
import { openRegular } from '../core/safeOpen.ts'

const maxBytes = 4096
const maxLogLines = 80
const maxLogBytes = 2048
const logTimeoutMs = 5_000

/** Adds termination messages to the records of containers that have ended. */
export async function withTerminationMessages(context: KubeletContext, status: PodRuntimeStatus, cache: Map<string, string>): Promise<PodRuntimeStatus> {
  const { host } = context
  if (!host) return status
  const containers = await Promise.all(
    status.containers.map(async (record) => {
      if (record.state !== 'exited') return record
      const message = cache.get(record.id) ?? (await read(context, record))
      cache.set(record.id, message)
      return message ? { ...record, message: record.message ? `${record.message}: ${message}` : message } : record
    }),
  )
  return { ...status, containers }
}

async function read(context: KubeletContext, record: ContainerRecord): Promise<string> {
  const path = record.status.annotations[annotationKeys.terminationMessagePath]
  const mount = record.status.mounts.find((candidate) => candidate.containerPath === path)
  const written = mount && context.host ? await tail(context.host.path(mount.hostPath), maxBytes) : ''
  const fallBack = record.status.annotations[annotationKeys.terminationMessagePolicy] === 'FallbackToLogsOnError' && record.exitCode !== 0
  if (written !== '' || !fallBack) return written
  // A line may be as long as the log: only its end is kept.
  let end: Buffer = Buffer.alloc(0)
  using limit = deadlineScope({ clock: context.clock, ms: logTimeoutMs })
  try {
    const options = { follow: false, timestamps: false, tailLines: maxLogLines }
    for await (const chunk of context.runtime.logs(record.status, options, limit.signal)) end = lastOf(Buffer.concat([end, chunk]))
  } catch {
    // Without a log there is no message; the exit code remains.
    return ''
  }
  return end.toString()
}

const lastOf = (bytes: Buffer) => bytes.subarray(Math.max(0, bytes.length - maxLogBytes))

async function tail(path: string, limit: number): Promise<string> {
  // A volume may be mounted there, and hold a pipe, a directory or a link.
  const file = await openRegular(path).catch(() => undefined)
  if (!file) return ''
  try {
    const { size } = await file.stat()
    const start = Math.max(0, size - limit)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(size, limit)), 0, Math.min(size, limit), start)
    return buffer.subarray(0, bytesRead).toString()
  } finally {
    await file.close()
  }
}
