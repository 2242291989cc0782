// Networks from the IANA special-purpose address registries (RFC 6890 and its updates).
#include "server/public_address.h"

#include <algorithm>
#include <array>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>

namespace sluice {
namespace {

namespace ip = boost::asio::ip;

bool is_public_v4(const ip::address_v4& address) {
  static const auto kOthers = [] {
    constexpr std::array kNetworks{
        "0.0.0.0/8",      "10.0.0.0/8",     "100.64.0.0/10",   "127.0.0.0/8",     "169.254.0.0/16",
        "172.16.0.0/12",  "192.0.0.0/24",   "192.0.2.0/24",    "192.31.196.0/24", "192.52.193.0/24",
        "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15",   "198.51.100.0/24",
        "203.0.113.0/24", "224.0.0.0/3"};
    std::array<ip::network_v4, kNetworks.size()> networks;
    std::ranges::transform(kNetworks, networks.begin(),
                           [](const char* text) { return ip::make_network_v4(text); });
    return networks;
  }();
  return std::ranges::none_of(kOthers, [&](const ip::network_v4& network) {
    return (address.to_uint() & network.netmask().to_uint()) == network.address().to_uint();
  });
}

bool is_in(const ip::address_v6::bytes_type& bytes, const ip::network_v6& network) {
  const ip::address_v6::bytes_type prefix = network.address().to_bytes();
  for (unsigned bit = 0; bit < network.prefix_length(); ++bit) {
    const unsigned mask = 0x80U >> (bit % 8);
    if (((bytes[bit / 8] ^ prefix[bit / 8]) & mask) != 0) {
      return false;
    }
  }
  return true;
}

// Global unicast is 2000::/3; what of it is special is left out.
bool is_public_v6(const ip::address_v6& address) {
  static const ip::network_v6 kGlobal = ip::make_network_v6("2000::/3");
  static const std::array kOthers{ip::make_network_v6("2001::/23"),      // Teredo, ORCHID, ...
                                  ip::make_network_v6("2001:db8::/32"),  // documentation
                                  ip::make_network_v6("2002::/16"),      // 6to4
                                  ip::make_network_v6("2620:4f:8000::/48"),
                                  ip::make_network_v6("3fff::/20")};  // documentation
  const ip::address_v6::bytes_type bytes = address.to_bytes();
  return address.scope_id() == 0 && is_in(bytes, kGlobal) &&
         std::ranges::none_of(kOthers,
                              [&](const ip::network_v6& network) { return is_in(bytes, network); });
}

}  // namespace

bool is_public_address(const ip::address& address) {
  return address.is_v4() ? is_public_v4(address.to_v4()) : is_public_v6(address.to_v6());
}

}  // namespace sluice
