/**
 * What the page's WebSockets offer in addition to the API's protocols (L4, pure): WebSockets of browsers have no headers of their own, so that the front takes
 * these for headers and passes none of them on.
 */

/** The front chooses it when the server behind it chooses no protocol: browsers refuse an answer without one. */
export const plainProtocol = 'skiff.ui'
/** Followed by the session's key. */
export const keyProtocol = 'skiff.ui.key.'
/** Asks for the events of a watch as rows of a table. */
export const tableProtocol = 'skiff.ui.table'
export const tableForm = 'application/json;as=Table;v=v1;g=meta.k8s.io'
