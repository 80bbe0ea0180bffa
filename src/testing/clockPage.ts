/** GET and POST /skiff/clock (testing): reads and moves the virtual time of a cluster. A non-resource path, denied to users without a role that names it. */
import { type ClockChange, clockPath, mostSpeed, mostStepMs } from '#api/debug/clock'
import { badRequest } from '#api/machinery/status'
import type { Page } from '#apiserver/core/page'
import type { ServerRequest } from '#apiserver/core/request'
import type { ClockControl } from './clockControl.ts'

const mostBodyBytes = 1024

export function clockPage(control: ClockControl): Page {
  return {
    prefix: clockPath,
    acceptsPost: true,
    handle: async (request) => {
      if (request.path !== clockPath) return undefined
      if (request.method === 'POST') await apply(control, await changeIn(request))
      return { type: 'value', status: 200, value: control.state }
    },
  }
}

async function apply(control: ClockControl, { speed, stepMs }: ClockChange): Promise<void> {
  if ((speed === undefined) === (stepMs === undefined)) throw badRequest('expected either speed or stepMs')
  if (speed !== undefined) {
    if (!(typeof speed === 'number' && speed >= 0 && speed <= mostSpeed)) throw badRequest(`speed: expected a number from 0 to ${mostSpeed}`)
    if (speed > 0) control.setSpeed(speed)
    else await control.stop()
  }
  if (stepMs !== undefined) {
    const most = mostStepMs - control.state.stepMs
    if (!(Number.isInteger(stepMs) && stepMs >= 1 && stepMs <= most)) throw badRequest(`stepMs: expected a whole number from 1 to ${most}`)
    control.step(stepMs)
  }
}

async function changeIn(request: ServerRequest): Promise<ClockChange> {
  const body = await request.readBody(mostBodyBytes)
  const value = body.type === 'value' ? body.value : parsed(body.bytes)
  if (typeof value !== 'object' || value === null) throw badRequest('expected a JSON object with speed or stepMs')
  return value as ClockChange
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    throw badRequest('expected a JSON object with speed or stepMs')
  }
}
