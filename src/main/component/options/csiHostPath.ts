/** The flags of `skiff csi-hostpath` (L5). */
import path from 'node:path'
import { isQuantity, quantityValue } from '#api/machinery/quantity'
import { text, UsageError } from '../../apiserver/options/flags.ts'
import { optionGroup } from '../../apiserver/options/optionGroup.ts'

export const csiHostPathOptions = optionGroup({
  name: 'Driver',
  flags: {
    capacity: text('The size of all volumes together, such as 10Gi; empty: as much as the disk has'),
    endpoint: text('The socket to serve, as unix:///PATH'),
    'node-id': text('The name of the node'),
    'plugin-registration-path': text("The kubelet's plugins_registry, where the driver registers; empty: it does not"),
    'state-dir': text('The directory with the volumes and their state'),
  },
  settings(values) {
    const missing = (['endpoint', 'node-id', 'state-dir'] as const).filter((name) => values[name] === '')
    const faults = missing.map((name) => `--${name} must be given`)
    const capacityBytes = values.capacity === '' ? undefined : bytesOf(values.capacity)
    if (capacityBytes !== undefined && !(capacityBytes > 0)) faults.push(`--capacity: ${JSON.stringify(values.capacity)} is not a positive quantity`)
    if (faults.length > 0) throw new UsageError(faults)
    return {
      endpoint: values.endpoint,
      registry: values['plugin-registration-path'],
      driver: { nodeId: values['node-id'], directory: path.resolve(values['state-dir']), capacityBytes },
    }
  },
})

/** NaN for a text that is no quantity. */
const bytesOf = (text: string) => (isQuantity(text) ? quantityValue(text) : Number.NaN)
