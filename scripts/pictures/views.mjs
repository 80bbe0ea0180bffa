/** The views of the page, by address. `picture`: one of docs/. */

/** @param names a pod of the Deployment shop, a node, and an early revision */
export function viewsOf({ pod, node, revision }) {
  return [
    { name: 'overview', address: 'overview?ns=*', picture: true },
    { name: 'list', address: 'list/pods?ns=*', picture: true },
    { name: 'object', address: 'object/deployments.apps/default/shop/summary', picture: true },
    { name: 'pod', address: `object/pods/default/${pod}/summary` },
    { name: 'node', address: `object/nodes/-/${node}/summary` },
    { name: 'yaml', address: 'object/configmaps/default/prices/yaml' },
    { name: 'events', address: 'object/pods/default/report/events' },
    { name: 'why', address: 'object/deployments.apps/default/checkout/why', picture: true },
    { name: 'whypod', address: 'object/pods/default/training/why' },
    { name: 'whyautoscaler', address: 'object/horizontalpodautoscalers.autoscaling/default/shop/why' },
    { name: 'whynamespace', address: 'object/namespaces/-/leaving/why' },
    { name: 'logs', address: 'object/deployments.apps/default/shop/logs' },
    { name: 'shell', address: `object/pods/default/${pod}/shell` },
    { name: 'files', address: `object/pods/default/${pod}/files` },
    { name: 'related', address: `object/pods/default/${pod}/related` },
    { name: 'history', address: 'object/configmaps/default/prices/history' },
    { name: 'calls', address: `object/pods/default/${pod}/calls` },
    { name: 'rules', address: 'object/services/default/shop/rules' },
    { name: 'scheduling', address: 'scheduling?ns=*&pod=default/training', picture: true },
    { name: 'live', address: 'live', picture: true, creates: 'cart' },
    { name: 'trace', address: 'object/pods/default/cart/trace', picture: true },
    { name: 'controllers', address: 'controllers', picture: true },
    { name: 'store', address: 'store?prefix=/registry/configmaps/default/&key=/registry/configmaps/default/prices', picture: true },
    { name: 'past', address: `past?kind=pods&ns=default&revision=${revision}`, picture: true },
    { name: 'capacity', address: 'capacity', picture: true },
    { name: 'usage', address: 'usage' },
    { name: 'helm', address: 'helm?ns=*' },
    { name: 'chaos', address: 'chaos?ns=default', picture: true },
    { name: 'access', address: 'access?ns=default', picture: true },
    { name: 'unknown', address: 'object/configmaps/default/missing/summary' },
    { name: 'emptylist', address: 'list/jobs.batch?ns=default' },
  ]
}
