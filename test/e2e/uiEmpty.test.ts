/** The page of `skiff ui` over a cluster without nodes and workloads (ARC-16): each view names what the cluster lacks. */
import { type Flow, runFlows } from './support/pageFlows.ts'
import { viewFlow } from './support/viewFlow.ts'

const words = [
  ['overview?ns=*', 'none in the last hour'],
  ['list/pods?ns=*', 'No pods here'],
  ['scheduling?ns=*', 'Every pod has a node.'],
  ['live', '0 of 0 ready'],
  ['controllers', 'None is recorded since this view is open.'],
  ['past?kind=pods&ns=*', 'No pods here'],
  ['capacity', 'The cluster has no nodes'],
  ['usage', 'Nothing is measured yet'],
  ['helm?ns=*', 'Helm has installed nothing here'],
  ['object/pods/default/missing/summary', 'missing does not exist'],
] as const

const flows: Flow[] = words.map(([address, text]) => ({
  name: `ARC-16 ${address} of an empty cluster says ${JSON.stringify(text)}`,
  run: async ({ page, open }) => {
    await open(`#/${address}`)
    await page.getByText(text).first().waitFor()
  },
}))

runFlows('e2e-ui-empty', ['--simulated-nodes', '0'], async () => {}, [...flows, viewFlow('overview')])
