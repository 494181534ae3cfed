// The brand of whoever runs the gateway, which the page has from the configuration.
const mark = document.querySelector<HTMLMetaElement>('meta[name=brand]');

/** brand is the name at the top and in titles. */
export const brand = mark?.content ?? 'durward';

/** logo is the address of the picture beside it; "" for none, undefined for the gateway's own. */
export const logo = mark?.dataset['logo'];
