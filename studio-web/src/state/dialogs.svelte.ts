/** Which dialog is open. */
export const dialogs = $state({ code: false, keys: false, equations: false });
