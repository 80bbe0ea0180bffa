/** Makes the context of a controller (L3), the same for the built-in controllers and those of skiff-kubernetes/controller. */
import { createEventRecorder, type EventRecorder } from '#client/eventRecorder'
import type { ControllerContext } from './controller.ts'

/** Its event recorders write until `signal` aborts; there is one for each source component. */
export function createControllerContext(parts: Omit<ControllerContext, 'events'>, signal: AbortSignal): ControllerContext {
  const { client, clock, random, log } = parts
  const recorders = new Map<string, EventRecorder>()
  const events = (component: string) => {
    const recorder = recorders.get(component) ?? createEventRecorder({ client, clock, random, log }, { component }, signal)
    recorders.set(component, recorder)
    return recorder
  }
  return { ...parts, events }
}
