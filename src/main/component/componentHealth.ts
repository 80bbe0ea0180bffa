/**
 * The health of components for `kubectl get componentstatuses` (L5). A component of this process is healthy while it runs; one with a process of its own is
 * asked through its port, as upstream's are. Upstream: pkg/registry/core/rest/storage_core.go (serversToValidate), pkg/probe/http (v1.36).
 */
import { request } from 'node:https'
import { dialErrorText } from '#apiserver/backends/dialError'
import { type ComponentHealth, type ComponentProbe, healthy } from '#apiserver/endpoints/componentStatuses'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import { messageOf } from '#base/messageOf'

/** A component that fails is started again at once: for this long, its last failure is reported. */
const failureShownMs = 30_000
const host = '127.0.0.1'
const maxBodyBytes = 10 * 1024

export interface ComponentWatch extends ComponentProbe {
  /** The same component, watched. */
  watch(component: Component): Component
}

/** Follows the runs of a component. Before its first run it is unhealthy. */
export function createComponentWatch(name: string, clock: Clock): ComponentWatch {
  let isRunning = false
  let failure: { readonly message: string; readonly untilMs: number } | undefined
  return {
    name,
    probe() {
      if (failure && clock.monotonicMs() < failure.untilMs) return unhealthy(failure.message)
      return isRunning ? healthy : unhealthy('it is not running')
    },
    watch: (component) => ({
      name: component.name,
      async run(signal) {
        isRunning = true
        try {
          await component.run(signal)
        } catch (error) {
          failure = { message: messageOf(error), untilMs: clock.monotonicMs() + failureShownMs }
          throw error
        } finally {
          isRunning = false
        }
      },
    }),
  }
}

function unhealthy(message: string): ComponentHealth {
  return { status: 'False', message }
}

/** Asks /healthz on this host, with whatever certificate the component has. */
export function portProbe(name: string, port: number): ComponentProbe {
  const url = `https://${host}:${port}/healthz`
  return {
    name,
    probe: (signal) =>
      new Promise((resolve) => {
        const failed = (error: Error) => resolve(unhealthy(`Get ${JSON.stringify(url)}: ${dialErrorText(error, { host, port })}`))
        const asking = request(url, { rejectUnauthorized: false, agent: false, signal }, (response) => {
          const chunks: Buffer[] = []
          let length = 0
          response.on('error', failed)
          response.on('data', (chunk: Buffer) => {
            chunks.push(chunk.subarray(0, maxBodyBytes - length))
            length = Math.min(maxBodyBytes, length + chunk.length)
            if (length === maxBodyBytes) response.destroy()
          })
          response.on('close', () => {
            const { statusCode = 0 } = response
            const isOk = statusCode >= 200 && statusCode < 400
            resolve(isOk ? { status: 'True', message: Buffer.concat(chunks).toString() } : unhealthy(`HTTP probe failed with statuscode: ${statusCode}`))
          })
        })
        asking.on('error', failed)
        asking.end()
      }),
  }
}
