/**
 * Records on a Service which of its external addresses the proxy ignores (L3): one Event for each change, whatever the number of addresses.
 */
import type { Service } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { EventRecorder } from '#client/eventRecorder'
import { type AddressRule, type IgnoredAddress, ignoredAddresses } from './externalAddresses.ts'

const maxNamed = 5

/** @returns a function that records Events for all Services; call it when Services or ranges have changed */
export function noteIgnoredAddresses(events: EventRecorder): (services: readonly Frozen<Service>[], rule: AddressRule) => void {
  let noted = new Map<string, string>()
  return (services, rule) => {
    const now = new Map<string, string>()
    for (const service of services) {
      const ignored = ignoredAddresses(service, rule)
      if (ignored.length === 0) continue
      const uid = service.metadata.uid ?? ''
      const message = messageOf(ignored)
      now.set(uid, message)
      if (noted.get(uid) !== message) events.event(service, 'Warning', 'ExternalAddressIgnored', message)
    }
    noted = now
  }
}

function messageOf(ignored: readonly IgnoredAddress[]): string {
  const named = ignored.slice(0, maxNamed).map(({ field, ip, reason }) => `${field}: ${ip} ${reason}`)
  const more = ignored.length > maxNamed ? `; and ${ignored.length - maxNamed} more` : ''
  return `External addresses are ignored: ${named.join('; ')}${more}`
}
