/** Follows a process that is no child of this one (L5). The kernel tells only a parent of its end, so it is looked at several times a second. */
import { EventEmitter } from 'node:events'
import type { Clock } from '#base/clock'
import { isRunning, type ProcessRef } from '#host/processes'
import type { FollowedProcess } from './superviseProcess.ts'

const lookEveryMs = 200

export class ForeignProcess extends EventEmitter implements FollowedProcess {
  readonly ref: ProcessRef
  exitCode: null | undefined = null
  readonly signalCode = null

  constructor(ref: ProcessRef) {
    super()
    this.ref = ref
  }

  get pid(): number {
    return this.ref.pid
  }

  /** Emits `exit` when the process has ended. */
  async follow(clock: Clock): Promise<void> {
    while (await isRunning(this.ref)) await clock.sleep(lookEveryMs)
    this.exitCode = undefined
    this.emit('exit')
  }
}

export function followProcess(ref: ProcessRef, clock: Clock): ForeignProcess {
  const found = new ForeignProcess(ref)
  void found.follow(clock)
  return found
}
