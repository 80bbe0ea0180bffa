/** A Deployment from no replica to `most`, and back to none, because of one trigger. */
import assert from 'node:assert/strict'
import { apply, kubectl } from '../support/kubectl.ts'
import { deployment, most, scaledObject, type Trigger } from './objects.ts'
import type { Replicas } from './replicas.ts'

/** Makes the trigger active, or inactive. */
export type Change = (active: boolean) => Promise<void> | void

interface Circumstances {
  /** Absent: time changes the trigger. */
  readonly change?: Change | undefined
  /** What the main container has besides its name and image. */
  readonly container?: Readonly<Record<string, unknown>>
}

/** The Deployment and its ScaledObject have this name. */
export async function scaleUpAndDown(replicas: Replicas, name: string, trigger: Trigger, { change = () => {}, container }: Circumstances): Promise<void> {
  await apply(deployment(name, 0, container), scaledObject(name, trigger))
  await becomes(name, 'Ready=True')
  await becomes(name, 'Active=False')
  await change(true)
  await replicas.until(name, most)
  await becomes(name, 'Active=True')
  await change(false)
  await replicas.until(name, 0)
  await becomes(name, 'Active=False')
  const history = replicas.historyOf(name)
  assert.deepEqual([history[0], Math.max(...history), history.at(-1)], [0, most, 0], String(history))
}

async function becomes(scaledObject: string, condition: string): Promise<void> {
  await kubectl(['wait', `--for=condition=${condition}`, '--timeout=240s', `scaledobject/${scaledObject}`])
}
